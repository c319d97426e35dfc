// Memory that consumers drop without saying when they are done (rule L5): it comes back once everything in the contexts that can
// reach it is complete, and is in quarantine until that is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/cuda/api/driver_api.hpp"
#include "backend/cuda/device/driver.hpp"
#include "memory/block.hpp"
#include "memory/quarantine.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/lifetime/reaper.hpp"
#include "support/beside.hpp"
#include "support/effort.hpp"
#include "support/messages.hpp"
#include "support/stream_capture.hpp"
#include "support/time_limit.hpp"
#include "unit/cuda_support.hpp"
#include "weir/borrow.hpp"
#include "weir/detail/giving_back.hpp"
#include "weir/detail/interruption.hpp"
#include "weir/dlpack.hpp"
#include "weir/poisoning.hpp"
#include "weir/testing.hpp"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsNan;

namespace gpu = backend::cuda;

constexpr int capture_unsupported = 900;

class L5Cuda : public ::testing::Test {
protected:
    void SetUp() override {
        if (!fake_cuda::in_use()) {
            GTEST_SKIP() << "needs the gates and counters of the fake driver";
        }
        in_.expect(in_.api().stream_create(&hidden_, gpu::stream_non_blocking, 0), "cuStreamCreateWithPriority");
        memory::trim(cuda());
        fake_cuda::forget_calls();
    }
    void TearDown() override {
        if (!fake_cuda::in_use()) {
            return;
        }
        fake_cuda::fail_no_more();
        fake_cuda::open_all();
        captures(capture_knowledge::unknown);
        safe_point();
        await_end();
        memory::limit(cuda(), std::size_t{1} << 40);
        if (hidden_ != nullptr) {
            // The memory that it uses may have come back long ago.
            EXPECT_EQ(in_.api().stream_synchronize(hidden_), gpu::success);
            in_.api().stream_destroy(hidden_);
        }
    }

    /// A consumer: uses the memory on a stream of its own, and drops it. Returns the address of the memory.
    const void* use_and_drop(array x) {
        const void* const where = x.device_data();
        const auto at = reinterpret_cast<gpu::device_pointer>(where);
        in_.expect(in_.api().fill8_async(at, 0, x.nbytes(), hidden_), "cuMemsetD8Async");
        x = array();
        return where;
    }
    /// The same, where the memory, that of `below`, belongs to another owner. `gone`: whether Weir has let that owner go.
    void use_and_drop_of_others(const array& below, std::atomic<bool>& gone) {
        const std::shared_ptr<std::atomic<bool>> owner(&gone, [](std::atomic<bool>* one) { *one = true; });
        const buffer of_others = buffer::wrap(below.device_data(), below.nbytes(), cuda(), owner);
        memory::lend_out(of_others);
        const auto at = reinterpret_cast<gpu::device_pointer>(below.device_data());
        in_.expect(in_.api().fill8_async(at, 0, below.nbytes(), hidden_), "cuMemsetD8Async");
    }
    [[nodiscard]] array lent() const {
        array x = make(s_, 1);
        s_.synchronize();
        memory::lend_out(x.buffer());
        return x;
    }
    static constexpr std::int64_t large = std::int64_t{8} << 20;  ///< bytes
    /// So many that no memory is left for as many again.
    [[nodiscard]] array lent_of_all_there_is() const {
        memory::trim(cuda());
        memory::limit(cuda(), static_cast<std::size_t>(large) + (std::size_t{1} << 20));
        array x = empty({large}, dtype::uint8, s_);
        memory::lend_out(x.buffer());
        return x;
    }
    [[nodiscard]] const void* next_address() const { return empty({elements}, dtype::float64, s_).device_data(); }
    static std::size_t quarantined() { return memory::stats(cuda()).quarantined; }
    static void await_end() {
        while (quarantined() != 0) {
            std::this_thread::yield();
        }
    }
    /// How often an event was recorded in all contexts in use.
    static unsigned long long marks() {
        return fake_cuda::calls("cuCtxRecordEvent") / runtime::cuda_devices_in_use().size();
    }
    static void await_marks(unsigned long long count) {
        while (marks() < count) {
            std::this_thread::yield();
        }
    }
    /// The reaper has looked at what was dropped: it is held or has gone back.
    static void settle() { runtime::reaper::wait_until_empty(); }

    gpu::device_context& in_ = gpu::context_of(cuda().state(detail::key).driver());
    gpu::in_context here_{in_};
    gpu::stream_handle hidden_ = nullptr;
    stream s_{cuda()};
};

TEST_F(L5Cuda, ControlWithoutItMemoryIsUsedAgainAtOnce) {
    array x = make(s_, 1);
    s_.synchronize();
    const fake_gate held(hidden_);
    const void* const where = use_and_drop(std::move(x));
    EXPECT_EQ(quarantined(), 0U);
    EXPECT_EQ(next_address(), where) << "while the consumer's work has not even begun";
}

/// What a consumer on a stream that Weir does not know reads, late, of an array of ones that `lend` handed over and that was dropped.
template <class Lend>
std::vector<double> read_late(const gpu::device_context& in, gpu::stream_handle consumer, const stream& s, Lend lend) {
    const memory::use scope(memory::poisoning());
    array x = make(s, 1);
    const array seen = make(s, 0);
    s.synchronize();
    lend(x.buffer());
    fake_gate held(consumer);
    const auto at = reinterpret_cast<gpu::device_pointer>(x.device_data());
    in.expect(in.api().copy_async(reinterpret_cast<gpu::device_pointer>(seen.device_data()), at, x.nbytes(), consumer),
              "cuMemcpyDtoDAsync_v2");
    x = array();
    runtime::reaper::wait_until_empty();
    cuda().synchronize();  // if the memory is filled, that is over
    held.open();
    EXPECT_EQ(in.api().stream_synchronize(consumer), gpu::success);
    const auto values = seen.read<double>();
    return {values.begin(), values.end()};
}

TEST_F(L5Cuda, L6PoisoningLeavesMemoryAloneThatAConsumerReads) {
    const std::vector<double> seen = read_late(in_, hidden_, s_, [](const buffer& of) { memory::lend_out(of); });
    EXPECT_THAT(seen, Each(1.0));
}

TEST_F(L5Cuda, L6ControlMemoryThatWasNotLentOutIsPoisonedAtOnce) {
    EXPECT_THAT(read_late(in_, hidden_, s_, [](const buffer& /*of*/) {}), Each(IsNan()));
    EXPECT_THAT(read_late(in_, hidden_, s_,
                          [](const buffer& of) {
                              memory::lend_out(of);
                              memory::take_back(of);
                          }),
                Each(IsNan()))
        << "the consumer's last use is known, and this one came later";
}

TEST_F(L5Cuda, WithoutCapturesItComesBackWhenTheContextIsDone) {
    captures(capture_knowledge::none);
    fake_gate held(hidden_);
    const void* const where = use_and_drop(lent());
    ASSERT_GE(quarantined(), elements * sizeof(double));
    EXPECT_NE(next_address(), where);
    await_marks(1);
    EXPECT_GT(quarantined(), 0U) << "the consumer is at work still";
    held.open();
    await_end();
    EXPECT_EQ(marks(), 1U);
    EXPECT_EQ(fake_cuda::calls("cuStreamWaitEvent"), 0U) << "no stream waits for the end of a context";
}

TEST_F(L5Cuda, WhereCapturesMayRunItStaysUntilASafePoint) {
    safe_point();  // too early: covers nothing that comes later
    fake_gate held(hidden_);
    const void* const where = use_and_drop(lent());
    settle();
    EXPECT_EQ(marks(), 0U) << "an event of the context would end a capture";
    EXPECT_GT(quarantined(), 0U);
    safe_point();
    EXPECT_EQ(marks(), 1U);
    EXPECT_GT(quarantined(), 0U) << "the consumer is at work still";
    EXPECT_NE(next_address(), where);
    held.open();
    await_end();
    safe_point();
    EXPECT_EQ(marks(), 1U) << "nothing was dropped since";
}

/// Keeps the reaper's thread busy until it is opened.
class busy_reaper final : public runtime::retired {
public:
    explicit busy_reaper(std::atomic<bool>& open) : open_(&open) {}

private:
    [[nodiscard]] std::optional<frontiers::point> pending() noexcept override { return std::nullopt; }
    void release() noexcept override {
        while (!open_->load()) {
            std::this_thread::yield();
        }
        delete this;
    }

    std::atomic<bool>* open_;
};

TEST_F(L5Cuda, ASafePointCoversWhatConsumersReleasedJustBefore) {
    const array x = make(s_, 1);
    s_.synchronize();
    std::atomic<bool> open = false;
    std::atomic<bool> has_returned = false;
    runtime::reaper::start();
    runtime::reaper::push(*std::make_unique<busy_reaper>(open).release());
    {
        array given = make(s_, 1);
        s_.synchronize();
        const exchange::dlpack_tensor of_consumer = exchange::to_dlpack(std::exchange(given, array()));
    }  // the consumer's release is behind what the reaper is busy with
    std::thread opens([&] {
        const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
        while (!has_returned.load() && std::chrono::steady_clock::now() < limit) {
            std::this_thread::yield();
        }
        open = true;
    });
    safe_point();
    has_returned = true;
    opens.join();
    settle();
    await_end();  // never ends if the safe point came before the drop
}

TEST_F(L5Cuda, DeclaringThatThereAreNoCapturesIsASafePoint) {
    use_and_drop(lent());
    settle();
    EXPECT_GT(quarantined(), 0U);
    captures(capture_knowledge::none);
    await_end();
}

TEST_F(L5Cuda, AStreamThatIsDestroyedWhileBusyIsWaitedFor) {
    captures(capture_knowledge::none);
    const auto id = fake_cuda::hold(hidden_);
    const void* const where = use_and_drop(lent());
    in_.api().stream_destroy(std::exchange(hidden_, nullptr));
    await_marks(1);
    EXPECT_GT(quarantined(), 0U);
    EXPECT_NE(next_address(), where);
    fake_cuda::open(id);
    await_end();
}

TEST_F(L5Cuda, AnEventIsForAllThatWasDroppedBefore) {
    array a = lent();
    array b = lent();
    use_and_drop(std::move(a));
    use_and_drop(std::move(b));
    settle();
    safe_point();
    await_end();
    EXPECT_EQ(marks(), 1U);
}

TEST_F(L5Cuda, EveryContextThatCanReachTheMemoryIsAsked) {
    if (devices().size() < 4) {
        GTEST_SKIP() << "needs two CUDA devices";
    }
    gpu::device_context& there = gpu::context_of(cuda(1).state(detail::key).driver());
    gpu::stream_handle stream = nullptr;
    {
        const gpu::in_context here(there);
        there.expect(there.api().stream_create(&stream, gpu::stream_non_blocking, 0), "cuStreamCreateWithPriority");
    }
    captures(capture_knowledge::none);
    const void* where = nullptr;
    {
        const fake_gate held(stream);
        const gpu::in_context here(there);
        array x = lent();
        where = x.device_data();
        const auto at = reinterpret_cast<gpu::device_pointer>(where);
        there.expect(there.api().fill8_async(at, 0, x.nbytes(), stream), "cuMemsetD8Async");
        x = array();
        await_marks(1);
        EXPECT_GT(quarantined(), 0U);
        EXPECT_NE(next_address(), where);
    }
    await_end();
    const gpu::in_context here(there);
    there.api().stream_destroy(stream);
}

TEST_F(L5Cuda, MemoryWhoseLastUseIsKnownIsNotKept) {
    array x = lent();
    memory::take_back(x.buffer());
    const void* const where = use_and_drop(std::move(x));
    EXPECT_EQ(quarantined(), 0U);
    EXPECT_EQ(next_address(), where);
}

TEST_F(L5Cuda, L6ARequestForTheMemoryWaitsForItsEndOrSaysWhatToDo) {
    array x = lent_of_all_there_is();
    fake_gate held(hidden_);
    const void* const where = use_and_drop(std::move(x));
    settle();
    const auto again = [&] { return empty({large}, dtype::uint8, s_).device_data(); };
    EXPECT_THAT(message_of<out_of_memory>(again), AllOf(HasSubstr("in quarantine"), HasSubstr("weir::safe_point()")));
    safe_point();
    std::thread later([&] { held.open(); });
    EXPECT_EQ(again(), where) << "it waits on the host";
    later.join();
}

TEST_F(L5Cuda, L6ARequestWaitsForWhatConsumersReleasedAndTheReaperHasNotHandled) {
    const time_limit limit(sanitized ? 120 : 20, "who asks for memory that a consumer has released");
    captures(capture_knowledge::none);
    array x = lent_of_all_there_is();
    const void* const where = x.device_data();
    exchange::dlpack_tensor of_consumer = exchange::to_dlpack(std::exchange(x, array()));
    std::atomic<bool> open = false;
    runtime::reaper::push(*std::make_unique<busy_reaper>(open).release());
    of_consumer.reset();
    beside asks([&] { EXPECT_NO_THROW(EXPECT_EQ(empty({large}, dtype::uint8, s_).device_data(), where)); });
    EXPECT_TRUE(asks.waits());
    open = true;
    asks.join();
    runtime::reaper::wait_until_empty();  // its thread looks at `open`, also where the request did not wait for it
}

TEST_F(L5Cuda, X8AThreadThatPassesMemoryOnGetsBackWhatConsumersAreDoneWith) {
    captures(capture_knowledge::none);
    constexpr int tries = 100;
    int back = 0;
    for (int i = 0; i < tries; ++i) {
        array x = lent();
        array y = lent();
        x = array();
        y = array();
        runtime::reaper::drain();  // the ends are recorded, and complete: nothing runs
        detail::give_back_released();
        back += quarantined() == 0 ? 1 : 0;
        await_end();
    }
    EXPECT_GT(back, tries / 2) << "without it the memory comes back when Weir's threads look, up to 10 ms later";
}

TEST_F(L5Cuda, X8MemoryThatAConsumerUsesStaysWhereAThreadAsksForIt) {
    captures(capture_knowledge::none);
    fake_gate held(hidden_);
    use_and_drop(lent());
    use_and_drop(lent());
    await_marks(1);
    const std::size_t kept = quarantined();
    detail::give_back_released();
    EXPECT_EQ(quarantined(), kept);
    EXPECT_EQ(fake_cuda::calls("cuEventSynchronize") + fake_cuda::calls("cuCtxSynchronize"), 0U)
        << "and it does not wait";
    held.open();
    await_end();
}

TEST_F(L5Cuda, L6WhatLeavesQuarantineJustThenIsNotMissing) {
    const time_limit limit(10, "who asks for memory that leaves quarantine");
    array x = lent_of_all_there_is();
    fake_gate held(hidden_);
    const void* const where = use_and_drop(std::move(x));
    settle();
    std::thread asks([&] {
        fake_cuda::stop("cuMemGetInfo_v2");  // called for the text of the error about missing memory
        EXPECT_NO_THROW(EXPECT_EQ(empty({large}, dtype::uint8, s_).device_data(), where));
    });
    while (!fake_cuda::is_stopped()) {
        std::this_thread::yield();
    }
    safe_point();
    held.open();
    await_end();
    fake_cuda::go_on();
    asks.join();
}

TEST_F(L5Cuda, AnOlderDriverWaitsAtTheSafePoint) {
    auto& api = const_cast<gpu::driver_api&>(in_.api());  // the driver's own table, which is no constant
    const auto function = std::exchange(api.context_record_event, nullptr);
    captures(capture_knowledge::none);
    use_and_drop(lent());
    settle();
    EXPECT_GT(quarantined(), 0U) << "there is no event that could tell";
    EXPECT_EQ(fake_cuda::calls("cuCtxSynchronize"), 0U);
    safe_point();
    EXPECT_EQ(fake_cuda::calls("cuCtxSynchronize"), runtime::cuda_devices_with_context().size());
    await_end();
    api.context_record_event = function;
}

TEST_F(L5Cuda, S1MemoryIsDroppedWhileASafePointWaitsForTheDevice) {
    const time_limit limit(sanitized ? 120 : 10, "the release of memory, while another thread waits at a safe point,");
    auto& api = const_cast<gpu::driver_api&>(in_.api());  // the driver's own table, which is no constant
    const auto function = std::exchange(api.context_record_event, nullptr);
    array late = lent();
    fake_gate held(hidden_);
    use_and_drop(lent());
    settle();
    std::thread waits([] { safe_point(); });
    while (fake_cuda::calls("cuCtxSynchronize") == 0) {
        std::this_thread::yield();
    }
    late = array();
    settle();  // the work that opens the gate may be behind it
    held.open();
    waits.join();
    EXPECT_GT(quarantined(), 0U) << "one was dropped later";
    safe_point();
    await_end();
    api.context_record_event = function;
}

TEST_F(L5Cuda, S1NoCallWaitsForAThreadThatRecordsTheEndOfAContext) {
    const time_limit limit(sanitized ? 120 : 10, "who looks at the end of a context that another thread records");
    array late = lent();
    use_and_drop(lent());
    settle();
    std::thread records([] {
        fake_cuda::stop("cuCtxRecordEvent");
        safe_point();
    });
    while (!fake_cuda::is_stopped()) {
        std::this_thread::yield();
    }
    late = array();
    settle();
    cuda().state(detail::key).driver().look_at_all();
    safe_point();
    await_end();
    fake_cuda::go_on();
    records.join();
    const auto before = marks();
    safe_point();
    EXPECT_EQ(marks(), before) << "nothing was dropped since the later one";
}

TEST_F(L5Cuda, ACaptureAllTheSameKeepsItInQuarantine) {
    captures(capture_knowledge::none);
    fake_cuda::fail("cuCtxRecordEvent", 1, capture_unsupported);
    const void* const where = use_and_drop(lent());
    settle();
    EXPECT_GT(quarantined(), 0U);
    EXPECT_NE(next_address(), where);
    safe_point();
    await_end();
}

TEST_F(L5Cuda, A15AConsumerThatReleasesWhileACaptureRunsDoesNotEndIt) {
    unsigned long long safe_points = 0;
    const auto release_during = [&](const std::function<bool(const std::function<void()>&)>& capture) {
        array x = lent();
        const void* where = nullptr;
        fake_gate held(hidden_);
        EXPECT_TRUE(capture([&] {
            where = use_and_drop(std::move(x));
            settle();
            EXPECT_GE(quarantined(), elements * sizeof(double)) << "the statistics show it";
            EXPECT_NE(next_address(), where);
        })) << "the capture gave a graph";
        EXPECT_GT(quarantined(), 0U);
        EXPECT_EQ(marks(), safe_points);
        safe_point();
        EXPECT_EQ(marks(), ++safe_points);
        EXPECT_GT(quarantined(), 0U) << "the consumer is at work still";
        EXPECT_NE(next_address(), where);
        held.open();
        await_end();
    };
    for (const capture_mode mode : {capture_mode::global, capture_mode::of_thread, capture_mode::relaxed}) {
        SCOPED_TRACE("mode " + std::to_string(static_cast<int>(mode)));
        release_during([&](const std::function<void()>& release) {
            stream_capture theirs(in_, mode);
            release();
            EXPECT_TRUE(theirs.goes_on());
            return theirs.end();
        });
        release_during([&](const std::function<void()>& release) {
            return while_another_thread_captures(in_, mode, gpu::stream_non_blocking,
                                                 [&](stream_capture& /*theirs*/) { release(); });
        });
    }
}

TEST_F(L5Cuda, A15ControlWhereTheProgramSaysThatThereAreNoCapturesTheReleaseEndsIt) {
    captures(capture_knowledge::none);
    array x = lent();
    {
        stream_capture theirs(in_);
        use_and_drop(std::move(x));
        settle();
        EXPECT_FALSE(theirs.goes_on());
        EXPECT_FALSE(theirs.end());
    }
    EXPECT_GT(quarantined(), 0U) << "the event that would tell was refused";
    safe_point();
    await_end();
}

TEST_F(L5Cuda, A15AConsumerMayReleaseWhileItsOwnStreamIsCaptured) {
    const stream theirs = stream::adopt(native_stream{hidden_}, cuda());
    theirs.synchronize();
    const std::size_t before = memory::stats(cuda()).live;
    {
        array x = make(s_, 1);
        s_.synchronize();
        exchange::dlpack_tensor of_consumer = exchange::to_dlpack(
            std::exchange(x, array()), {std::make_shared<exchange::stream_package>(theirs)}, std::nullopt);
        stream_capture capture(in_, hidden_);
        of_consumer.reset();
        settle();
        EXPECT_GE(quarantined(), elements * sizeof(double));
        EXPECT_TRUE(capture.goes_on());
        EXPECT_TRUE(capture.end());
    }
    safe_point();
    await_end();
    EXPECT_EQ(memory::stats(cuda()).live, before) << "the memory came back";
}

TEST_F(L5Cuda, PinnedMemoryIsReachedByTheContextsAsWell) {
    captures(capture_knowledge::none);
    const stream host(cpu());
    const memory::use scope(memory::pinned());
    array x = full({elements}, 1, dtype::float64, host);
    host.synchronize();
    memory::lend_out(x.buffer());
    fake_gate held(hidden_);
    const void* const where = use_and_drop(std::move(x));
    EXPECT_NE(empty({elements}, dtype::float64, host).device_data(), where);
    EXPECT_GT(memory::stats(cpu(), memory::pool_kind::shared).quarantined, 0U);
    EXPECT_EQ(memory::stats(cpu()).quarantined, 0U);
    held.open();
    settle();
    EXPECT_EQ(memory::stats(cpu(), memory::pool_kind::shared).quarantined, 0U);
    EXPECT_EQ(marks(), 1U);
    // Memory that no context reaches is the pool's at once.
    const memory::use plain(nullptr);
    array y = full({elements}, 1, dtype::float64, host);
    host.synchronize();
    memory::lend_out(y.buffer());
    const void* const there = y.device_data();
    y = array();
    EXPECT_EQ(empty({elements}, dtype::float64, host).device_data(), there);
}

TEST_F(L5Cuda, X8MemoryOfOthersGoesBackToThemAtTheEnd) {
    captures(capture_knowledge::none);
    array below = make(s_, 1);
    s_.synchronize();
    std::atomic<bool> gone{false};
    fake_gate held(hidden_);
    use_and_drop_of_others(below, gone);
    await_marks(1);
    EXPECT_FALSE(gone);
    held.open();
    settle();
    EXPECT_TRUE(gone);
}

TEST_F(L5Cuda, X8WhereCapturesMayRunMemoryOfOthersGoesBackToThemAfterASafePoint) {
    array below = make(s_, 1);
    s_.synchronize();
    std::atomic<bool> gone{false};
    use_and_drop_of_others(below, gone);
    EXPECT_EQ(in_.api().stream_synchronize(hidden_), gpu::success);
    settle();
    EXPECT_FALSE(gone) << "the consumer is done, and Weir may not ask the driver whether it is";
    EXPECT_EQ(marks(), 0U) << "an event of the context would end a capture";
    safe_point();
    settle();
    EXPECT_TRUE(gone);
    EXPECT_EQ(marks(), 1U);
}

/// A tensor of another library, in memory of the driver's. Its consumers' work must be able to complete when it is destroyed.
class foreign_tensor {
public:
    static constexpr std::int64_t bytes = std::int64_t{1} << 20;

    explicit foreign_tensor(const gpu::device_context& in) : in_(in) {
        gpu::device_pointer address = 0;
        in_.expect(in_.api().memory_alloc(&address, static_cast<std::size_t>(bytes)), "cuMemAlloc_v2");
        managed_.context = this;
        managed_.deleter = [](exchange::dlpack::managed_tensor_versioned* self) {
            static_cast<foreign_tensor*>(self->context)->deleted.fetch_add(1);
        };
        managed_.what.data = reinterpret_cast<void*>(address);
        managed_.what.on = {exchange::dlpack::device_type::cuda, 0};
        managed_.what.dimensions = 1;
        managed_.what.type = {1, 8, 1};
        managed_.what.shape = &extent_;
    }
    ~foreign_tensor() {
        safe_point();
        runtime::reaper::wait_until_empty();
        in_.api().memory_free(reinterpret_cast<gpu::device_pointer>(managed_.what.data));
    }
    foreign_tensor(const foreign_tensor&) = delete;
    foreign_tensor& operator=(const foreign_tensor&) = delete;

    [[nodiscard]] array import() { return exchange::from_dlpack(exchange::dlpack_tensor(&managed_)); }

    std::atomic<int> deleted{0};

private:
    const gpu::device_context& in_;
    std::int64_t extent_ = bytes;
    exchange::dlpack::managed_tensor_versioned managed_;
};

class L5ForeignMemory : public L5Cuda {
protected:
    static constexpr auto tensor_bytes = static_cast<std::size_t>(foreign_tensor::bytes);

    /// Imports the tensor, and passes it on to the consumer, which uses it and drops it.
    void pass_on(foreign_tensor& of) {
        array x = of.import();
        memory::lend_out(x.buffer());
        use_and_drop(std::move(x));
        runtime::reaper::drain();
    }
    static void limit_to(std::size_t tensors) { memory::limit(cuda(), tensors * tensor_bytes); }
};

TEST_F(L5ForeignMemory, ItIsCountedWhileItIsInQuarantine) {
    foreign_tensor a(in_);
    foreign_tensor b(in_);
    fake_gate held(hidden_);
    const memory::statistics before = memory::stats(cuda());
    pass_on(a);
    EXPECT_EQ(quarantined(), tensor_bytes);
    pass_on(b);
    const memory::statistics now = memory::stats(cuda());
    EXPECT_EQ(now.quarantined, 2 * tensor_bytes);
    EXPECT_EQ(now.live + now.pending + now.cached, before.live + before.pending + before.cached)
        << "it is not the pool's";
    safe_point();
    EXPECT_EQ(quarantined(), 2 * tensor_bytes) << "the consumer is at work still";
    EXPECT_EQ(a.deleted + b.deleted, 0);
    held.open();
    settle();
    EXPECT_EQ(quarantined(), 0U);
    EXPECT_EQ(a.deleted, 1);
    EXPECT_EQ(b.deleted, 1);
}

TEST_F(L5ForeignMemory, ControlMemoryWhoseLastUseIsKnownIsNotCounted) {
    foreign_tensor a(in_);
    array x = a.import();
    memory::lend_out(x.buffer());
    memory::take_back(x.buffer());
    x = array();
    EXPECT_EQ(quarantined(), 0U);
    settle();
    EXPECT_EQ(a.deleted, 1);
}

TEST_F(L5ForeignMemory, L6WhereCapturesMayRunAnImportBeyondTheLimitSaysWhatToDo) {
    foreign_tensor a(in_);
    foreign_tensor b(in_);
    foreign_tensor refused(in_);
    foreign_tensor later(in_);
    limit_to(2);
    pass_on(a);
    EXPECT_NO_THROW(pass_on(b)) << "control: both are no more than the limit";
    ASSERT_EQ(quarantined(), 2 * tensor_bytes);
    EXPECT_THAT(message_of<out_of_memory>([&] { static_cast<void>(refused.import()); }),
                AllOf(HasSubstr(std::to_string(2 * tensor_bytes) + " bytes of other libraries are in quarantine"),
                      HasSubstr("declare weir::captures(weir::capture_knowledge::none)"),
                      HasSubstr("call weir::safe_point()")));
    EXPECT_EQ(refused.deleted, 1) << "as where any import fails";
    EXPECT_EQ(marks(), 0U) << "an event of the context would end a capture";
    EXPECT_EQ(quarantined(), 2 * tensor_bytes);
    safe_point();
    EXPECT_NO_THROW(static_cast<void>(later.import()));
    settle();
    EXPECT_EQ(a.deleted, 1);
    EXPECT_EQ(b.deleted, 1);
    EXPECT_EQ(later.deleted, 1);
    EXPECT_EQ(refused.deleted, 1);
}

TEST_F(L5ForeignMemory, L6ControlWithoutQuarantineTheLimitIsNoMatterOfImports) {
    foreign_tensor a(in_);
    foreign_tensor b(in_);
    memory::limit(cuda(), 1);
    const array x = a.import();
    EXPECT_NO_THROW(static_cast<void>(b.import()));
}

TEST_F(L5ForeignMemory, L6WithoutCapturesAnImportWaitsWhereTheLimitAsksForItAlone) {
    captures(capture_knowledge::none);
    foreign_tensor a(in_);
    foreign_tensor b(in_);
    foreign_tensor c(in_);
    limit_to(2);
    fake_gate held(hidden_);
    pass_on(a);
    pass_on(b);  // below the limit nothing waits: the gate is closed
    ASSERT_EQ(quarantined(), 2 * tensor_bytes);
    array got;
    beside imports([&] { EXPECT_NO_THROW(got = c.import()); });
    EXPECT_TRUE(imports.waits());
    EXPECT_EQ(a.deleted + b.deleted, 0);
    held.open();
    imports.join();
    EXPECT_EQ(got.nbytes(), tensor_bytes);
    EXPECT_GE(a.deleted + b.deleted, 1);
}

TEST_F(L5ForeignMemory, L6WithoutCapturesALoopOfImportsGoesOn) {
    captures(capture_knowledge::none);
    std::vector<std::unique_ptr<foreign_tensor>> all;
    limit_to(2);
    for (int i = 0; i < 16; ++i) {
        all.push_back(std::make_unique<foreign_tensor>(in_));
        ASSERT_NO_THROW(pass_on(*all.back()));
        ASSERT_LE(quarantined(), 2 * tensor_bytes);
    }
    settle();
    for (const auto& each : all) {
        EXPECT_EQ(each->deleted, 1);
    }
}

/// A query that blocks the thread that waits, until the test lets it go on.
std::atomic<bool> is_asked{false};
std::atomic<bool> may_go_on{false};
void hold_up() {
    is_asked = true;
    while (!may_go_on) {
        std::this_thread::yield();
    }
}

class on_reapers_thread final : public runtime::retired {
public:
    explicit on_reapers_thread(std::function<void()> act) : act_(std::move(act)) {}
    ~on_reapers_thread() override = default;

private:
    [[nodiscard]] std::optional<frontiers::point> pending() noexcept override { return std::nullopt; }
    void release() noexcept override { act_(); }

    std::function<void()> act_;
};

TEST_F(L5Cuda, L6ARequestThatWaitsForMemoryDoesNotWaitForLaterMemory) {
    const time_limit limit(sanitized ? 120 : 20, "who waits for memory in quarantine");
    constexpr std::size_t tries = 64;
    std::vector<array> later;  // one of them gets a list entry at the address of the first one's
    for (std::size_t i = 0; i < tries; ++i) {
        later.push_back(make(s_, 1));
    }
    s_.synchronize();
    memory::trim(cuda());
    const memory::statistics now = memory::stats(cuda());
    const std::size_t held_by_pool = now.live + now.pending + now.cached + now.quarantined;
    memory::limit(cuda(), held_by_pool + static_cast<std::size_t>(large) + (std::size_t{1} << 20));
    array x = empty({large}, dtype::uint8, s_);
    // On the reaper's thread, which frees the entry: so the same thread reuses its address.
    runtime::reaper::start();
    on_reapers_thread first([&] { memory::lend_out(x.buffer()); });
    runtime::reaper::push(first);
    settle();
    const auto entry_of = [](const array& one) -> const void* {
        return static_cast<memory::block*>(one.buffer().resource(detail::key))->quarantine.get();
    };
    const void* const entry = entry_of(x);
    is_asked = false;
    may_go_on = false;
    std::optional<fake_gate> held(hidden_);
    const void* const where = use_and_drop(std::move(x));
    settle();
    safe_point();
    std::atomic<bool> has_it{false};
    std::thread waits([&] {
        const detail::interruptible asked(hold_up);
        has_it = empty({large}, dtype::uint8, s_).device_data() == where;
    });
    while (!is_asked) {
        std::this_thread::yield();
    }
    held.reset();
    await_end();
    std::size_t found = tries;
    on_reapers_thread again([&] {
        for (std::size_t i = 0; i < tries && found == tries; ++i) {
            memory::lend_out(later[i].buffer());
            found = entry_of(later[i]) == entry ? i : tries;
        }
    });
    runtime::reaper::push(again);
    settle();
    const bool is_same_address = found != tries;
    held.emplace(hidden_);
    use_and_drop(std::move(is_same_address ? later[found] : later[0]));
    settle();
    safe_point();
    may_go_on = true;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
    while (!has_it && std::chrono::steady_clock::now() < end) {
        std::this_thread::yield();
    }
    EXPECT_TRUE(has_it) << "the later memory is in use still";
    EXPECT_GT(quarantined(), 0U);
    held.reset();
    waits.join();
    if (!is_same_address && sanitized) {
        GTEST_SKIP() << "a sanitizer keeps freed addresses from being used again: nothing could go wrong";
    }
    EXPECT_TRUE(is_same_address) << "control: else nothing could go wrong";
}

TEST(L5CudaDeathTest, AContextThatOthersMadeIsAsked) {
    WEIR_NEEDS_FAKE();
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            const stream s(cuda());
            array x = make(s, 1);
            s.synchronize();
            memory::lend_out(x.buffer());
            // Another library creates the context of a device that Weir does not use, and uses the memory there.
            const gpu::driver_api& api = cuda_context().api();
            gpu::device_number other = 0;
            gpu::context_handle theirs = nullptr;
            gpu::stream_handle stream = nullptr;
            api.device_get(&other, 1);
            api.primary_context_retain(&theirs, other);
            api.context_set_current(theirs);
            api.stream_create(&stream, gpu::stream_non_blocking, 0);
            fake_gate held(stream);
            api.fill8_async(reinterpret_cast<gpu::device_pointer>(x.device_data()), 0, x.nbytes(), stream);
            x = array();
            runtime::reaper::wait_until_empty();
            safe_point();
            const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
            while (memory::stats(cuda()).quarantined != 0 && std::chrono::steady_clock::now() < end) {
                std::this_thread::yield();
            }
            const bool stays = memory::stats(cuda()).quarantined != 0;
            held.open();
            while (memory::stats(cuda()).quarantined != 0) {
                std::this_thread::yield();
            }
            std::fprintf(stderr, stays ? "it stayed" : "it came back too early");
            std::exit(0);
        },
        ::testing::ExitedWithCode(0), "it stayed");
}

/// A static object that waits for the end of a context when the process ends: made when the reaper had started, and before
/// Weir used the driver.
class late_dropper {
public:
    void begin() {
        x_ = make(s_.emplace(cuda()), 1);
        s_->synchronize();
        memory::lend_out(x_->buffer());
    }
    ~late_dropper() {
        const time_limit limit(sanitized ? 120 : 10, "the end of a context in a static destructor");
        x_.reset();
        runtime::reaper::wait_until_empty();
        safe_point();
        while (memory::stats(cuda()).quarantined != 0) {
            std::this_thread::yield();
        }
        std::fprintf(stderr, "the memory came back\n");
    }

private:
    std::optional<stream> s_;
    std::optional<array> x_;
};

TEST(L5CudaDeathTest, MemoryComesBackInStaticDestructors) {
    WEIR_NEEDS_FAKE();
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            static_cast<void>(fake_cuda::calls());  // opens the driver
            runtime::reaper::start();               // so that it ends later than the code that polls the device
            static late_dropper one;
            one.begin();
            std::exit(0);
        },
        ::testing::ExitedWithCode(0), "the memory came back");
}

TEST_F(L5Cuda, AnArrayThatADlpackConsumerHadIsInQuarantineUntilItsEndIsKnown) {
    const stream s(cuda());
    {
        const array x = make(s, 1);
        s.synchronize();
        exchange::dlpack_tensor out = exchange::to_dlpack(x);
        out.reset();
    }
    runtime::reaper::wait_until_empty();
    EXPECT_GT(memory::stats(cuda()).quarantined, 0U);
    captures(capture_knowledge::none);
    safe_point();
    await_end();
    EXPECT_EQ(memory::stats(cuda()).quarantined, 0U);
}

TEST_F(L5Cuda, ANewOwnerSharesNothingWithPackagesOfTheFormerOne) {
    const stream theirs(cuda());
    array x = make(s_, 1);
    s_.synchronize();
    exchange::share_for_good(detail::key, x, {std::make_shared<exchange::stream_package>(theirs)}, package_use::writes);
    {
        testing::gate held;
        held.hold(s_);
        fill(s_, x, 0);
        EXPECT_FALSE(theirs.done()) << "the control: the package's stream waits for what changes the array (rule X7)";
    }
    const void* const where = use_and_drop(std::move(x));
    safe_point();
    await_end();
    std::vector<array> next;
    do {
        next.push_back(empty({elements}, dtype::float64, s_));
        ASSERT_LT(next.size(), 10'000U) << "the memory is not used again";
    } while (next.back().device_data() != where);
    theirs.synchronize();
    testing::gate held;
    held.hold(s_);
    fill(s_, next.back(), 0);
    EXPECT_TRUE(theirs.done());
}

}  // namespace
}  // namespace weir::test
