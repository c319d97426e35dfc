// CUDA's implicit ordering: the legacy default stream, blocking streams, threads' default streams, and streams that take no
// part in it (rule S6, scenario F5).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "backend/cuda/device/driver.hpp"
#include "runtime/devices/device_state.hpp"
#include "support/effort.hpp"
#include "support/messages.hpp"
#include "support/time_limit.hpp"
#include "unit/cuda_support.hpp"

namespace weir::test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

namespace gpu = backend::cuda;

native_stream number(std::uintptr_t handle) { return {reinterpret_cast<void*>(handle)}; }

/// These hold streams of the fake driver, and count its calls.
class S6Cuda : public ::testing::Test {
protected:
    void SetUp() override {
        if (!fake_cuda::in_use()) {
            GTEST_SKIP() << "needs the gates and counters of the fake driver";
        }
        step_kernel();
        cuda().synchronize();
    }
    void TearDown() override {
        if (fake_cuda::in_use()) {
            fake_cuda::open_all();
            cuda().synchronize();
        }
    }

    /// Writes x on `first`, which is held, and reads it on `second`, with the program's own order alone. Returns the value that was read:
    /// 11 from before the write, 111 from the write.
    static double read_behind(const stream& first, const stream& second) {
        const ordering_scope manual(ordering_mode::manual);
        array x = make(first, 1);
        array y = make(second, 0);
        cuda().synchronize();
        fake_cuda::forget_calls();
        fake_gate held(handle_of(first));
        step_in_place(first, x);
        const completion read = step(second, y, x);
        EXPECT_EQ(fake_cuda::calls("cuStreamWaitEvent"), 0U) << "nobody asked for a wait";
        if (!is_ordered(first, second)) {
            read.synchronize();  // the held stream does not hold it up
        }
        held.open();
        cuda().synchronize();
        return values_of<double>(y).front();
    }
    static bool is_ordered(const stream& a, const stream& b) {
        return backend::ordered_by_device(a.state(detail::key).ordered_as(), b.state(detail::key).ordered_as());
    }
    /// The same with Weir's ordering. Returns how many waits the driver was asked for.
    static unsigned long long waits_of(const stream& first, const stream& second) {
        array x = make(first, 1);
        array y = make(second, 0);
        cuda().synchronize();
        fake_cuda::forget_calls();
        {
            const fake_gate held(handle_of(first));
            step_in_place(first, x);
            step(second, y, x);
        }
        EXPECT_THAT(values_of<double>(y), Each(111));
        return fake_cuda::calls("cuStreamWaitEvent");
    }
    /// What check reports of a write on `first` and a read on `second` that the program does not order.
    static std::string races(const stream& first, const stream& second) {
        const ordering_scope manual(ordering_mode::manual);
        const check_scope check;
        array x = make(first, 1);
        array y = make(second, 0);
        cuda().synchronize();
        step_in_place(first, x);
        step(second, y, x);
        cuda().synchronize();
        EXPECT_THAT(values_of<double>(y), Each(111)) << "check keeps the program safe";
        const report all = check.report();
        EXPECT_LE(all.size(), 1U);
        return all.empty() ? "none" : all.races().front().kind;
    }

    /// The fake driver's gates find default streams by the calling thread's context.
    gpu::in_context here_{gpu::context_of(cuda().state(detail::key).driver())};
    stream legacy_ = stream::adopt(number(1), cuda());
    stream blocking_{cuda(), {.name = "blocking", .blocking = true}};
    stream other_{cuda(), {.name = "other"}};
};

TEST_F(S6Cuda, StreamsSayWhetherTheyBlock) {
    EXPECT_TRUE(blocking_.blocking());
    EXPECT_FALSE(other_.blocking());
    EXPECT_TRUE(stream::adopt(number(2), cuda()).blocking());
    EXPECT_TRUE(stream(cpu(), {.blocking = true}).blocking()) << "kept where it means nothing";
    EXPECT_EQ(stream::adopt(number(0), cuda()), legacy_);
    // The driver is asked about streams of others.
    const gpu::device_context& in = cuda_context();
    const gpu::in_context here(in);
    for (const unsigned flags : {gpu::stream_default, gpu::stream_non_blocking}) {
        gpu::stream_handle raw = nullptr;
        in.expect(in.api().stream_create(&raw, flags, 0), "cuStreamCreateWithPriority");
        EXPECT_EQ(stream::adopt({raw}, cuda()).blocking(), flags == gpu::stream_default);
        cuda().synchronize();
        in.api().stream_destroy(raw);
    }
    gpu::stream_handle own = static_cast<gpu::stream_handle>(handle_of(blocking_));
    unsigned flags = 99;
    EXPECT_EQ(in.api().stream_flags(own, &flags), gpu::success);
    EXPECT_EQ(flags, gpu::stream_default);
}

TEST_F(S6Cuda, TheLegacyStreamComesAfterBlockingOnes) { EXPECT_EQ(read_behind(blocking_, legacy_), 111); }
TEST_F(S6Cuda, BlockingStreamsComeAfterTheLegacyOne) { EXPECT_EQ(read_behind(legacy_, blocking_), 111); }
TEST_F(S6Cuda, AThreadsDefaultStreamIsABlockingOne) {
    EXPECT_EQ(read_behind(legacy_, stream::adopt(number(2), cuda())), 111);
    EXPECT_EQ(read_behind(stream::adopt(number(2), cuda()), legacy_), 111);
}
TEST_F(S6Cuda, ControlOtherStreamsAreNotOrdered) {
    EXPECT_EQ(read_behind(legacy_, other_), 11);
    EXPECT_EQ(read_behind(other_, legacy_), 11);
    EXPECT_EQ(read_behind(blocking_, stream(cuda(), {.blocking = true})), 11);
    EXPECT_EQ(read_behind(blocking_, other_), 11);
}

TEST_F(S6Cuda, O2WhatTheDriverOrdersIsNotWaitedFor) {
    EXPECT_EQ(waits_of(blocking_, legacy_), 0U);
    EXPECT_EQ(waits_of(legacy_, blocking_), 0U);
    EXPECT_EQ(waits_of(other_, legacy_), 1U) << "control";
    EXPECT_EQ(waits_of(legacy_, other_), 1U) << "control";
    EXPECT_EQ(waits_of(blocking_, other_), 1U) << "control";
}

TEST_F(S6Cuda, O2WhatComesAfterTheLegacyStreamComesAfterBlockingOnes) {
    array x = make(blocking_, 1);
    array y = make(legacy_, 0);
    array z = make(other_, 0);
    cuda().synchronize();
    fake_cuda::forget_calls();
    {
        const fake_gate held(handle_of(blocking_));
        step_in_place(blocking_, x);
        step(legacy_, y, x);
        step({other_, {}}, z, y);  // waits for the legacy stream,
        step_in_place(other_, x);  // which is enough
    }
    EXPECT_EQ(fake_cuda::calls("cuStreamWaitEvent"), 1U);
    EXPECT_THAT(values_of<double>(z), Each(1111));
    EXPECT_THAT(values_of<double>(x), Each(111));
}

TEST_F(S6Cuda, EventsAreRecordedBehindWhatTheDriverOrders) {
    const ordering_scope manual(ordering_mode::manual);
    for (const auto& [first, second] : {std::pair(legacy_, blocking_), std::pair(blocking_, legacy_)}) {
        array x = make(first, 1);
        array y = make(other_, 0);
        cuda().synchronize();
        fake_gate held(handle_of(first));
        step_in_place(first, x);
        const event behind = second.record();  // of a stream that has no other work
        other_.wait(behind);
        const completion read = step(other_, y, x);
        EXPECT_FALSE(read.done());
        held.open();
        cuda().synchronize();
        EXPECT_THAT(values_of<double>(y), Each(111));
    }
}

TEST_F(S6Cuda, SynchronizingTheLegacyStreamWaitsForBlockingOnes) {
    array x = make(blocking_, 1);
    cuda().synchronize();
    fake_gate held(handle_of(blocking_));
    const completion written = step_in_place(blocking_, x);
    std::thread later([&] { held.open(); });
    legacy_.synchronize();
    EXPECT_TRUE(written.done());
    later.join();
}

TEST_F(S6Cuda, HostTasksTakePart) {
    const ordering_scope manual(ordering_mode::manual);
    array x = make(legacy_, 1);
    cuda().synchronize();
    std::atomic<bool> ran{false};
    fake_gate held(handle_of(legacy_));
    const completion written = step_in_place(legacy_, x);
    const completion task = host_task(blocking_, [&] {
        EXPECT_TRUE(written.done());
        ran = true;
    });
    const completion free = host_task(other_, [] {});
    free.synchronize();
    EXPECT_FALSE(ran) << "control: another stream's was done at once";
    held.open();
    task.synchronize();
    EXPECT_TRUE(ran);
}

/// Work that a host task enqueues into the legacy stream comes after the task itself, since it comes after everything in blocking
/// streams. The call does not wait for that: the task would have to return first.
TEST_F(S6Cuda, O9AHostTaskOnABlockingStreamEnqueuesIntoTheLegacyOne) {
    const time_limit limit(sanitized ? 120 : 10, "a host task that enqueues into the legacy stream");
    array x = make(legacy_, 1);
    cuda().synchronize();
    std::optional<completion> inner;
    const completion task = host_task(blocking_, [&] {
        inner = step_in_place(legacy_, x);
        EXPECT_FALSE(inner->done());
    });
    task.synchronize();
    step_in_place(legacy_, x);  // comes after it, by a call that waits until it can be in the stream
    inner->synchronize();
    EXPECT_THAT(values_of<double>(x), Each(111));
}

/// The same in a stream of others, through the array that the task changes, and through work behind it on a third stream.
TEST_F(S6Cuda, O9AHostTaskEnqueuesIntoAnAdoptedStreamWhatComesAfterItself) {
    const time_limit limit(sanitized ? 120 : 10, "a host task that enqueues into a stream of others");
    const gpu::context& in = cuda_context();
    gpu::stream_handle raw = nullptr;
    in.expect(in.api().stream_create(&raw, gpu::stream_non_blocking, 0), "cuStreamCreateWithPriority");
    {
        const stream adopted = stream::adopt({raw}, cuda());
        const stream third(cuda());
        array x = make(other_, 1);
        array y = make(third, 0);
        array z = make(adopted, 0);
        cuda().synchronize();
        std::vector<completion> inner;
        const auto enqueue_behind = [&](auto...) {
            inner.push_back(step(third, y, x));
            inner.push_back(step(adopted, z, y));
            inner.push_back(step_in_place(adopted, x));
        };
        host_task(other_, enqueue_behind, inout<double>(x)).synchronize();
        for (const completion& one : inner) {
            one.synchronize();
        }
        EXPECT_THAT(values_of<double>(z), Each(111));
        EXPECT_THAT(values_of<double>(x), Each(11));
        cuda().synchronize();
    }
    in.api().stream_destroy(raw);
}

/// The exception is work that does not come after the task itself: others may go on in the stream as soon as the call returns. Here it
/// comes after work of the host's, which is held until a thread is seen to wait for it.
TEST_F(S6Cuda, O9AHostTaskWaitsWhereItMayUntilItsWorkIsInAStreamOfOthers) {
    const time_limit limit(sanitized ? 120 : 10, "a host task that enqueues behind work of the host's");
    const stream host(cpu());
    array x = make(legacy_, 1);
    array there = make(host, 5);
    cuda().synchronize();
    host.synchronize();
    testing::gate gate;
    gate.hold(host);
    fill(host, there, 7);
    copy(blocking_, x, there);  // held in Weir
    set_watchdog(std::chrono::milliseconds(4), [&](const std::string&) { gate.open(); });
    bool is_there = false;
    host_task(other_, [&] {
        step_in_place(legacy_, x);
        is_there = backend::timeline_table::instance().is_complete(
            {host.state(detail::key).timeline(), host.state(detail::key).sequence.tail()});
    }).synchronize();
    set_watchdog(std::chrono::seconds(60));
    gate.open();
    EXPECT_TRUE(is_there);
    EXPECT_THAT(values_of<double>(x), Each(71));
}

/// A package with a stream of its own.
class library_on final : public package {
public:
    explicit library_on(stream current) : current_(std::move(current)) {}
    [[nodiscard]] std::string_view name() const noexcept override { return "library"; }
    [[nodiscard]] std::optional<stream> current_stream(device /*of*/) override { return current_; }

private:
    stream current_;
};

/// The package would use what it gets back before the task has returned.
TEST_F(S6Cuda, X6AHostTaskIsRefusedWhatAPackageGetsBackAfterTheTask) {
    const time_limit limit(sanitized ? 120 : 10, "a host task that hands back to a package");
    const gpu::context& in = cuda_context();
    gpu::stream_handle raw = nullptr;
    in.expect(in.api().stream_create(&raw, gpu::stream_non_blocking, 0), "cuStreamCreateWithPriority");
    {
        array x = make(other_, 1);
        array z = make(other_, 3);
        cuda().synchronize();
        const live_export shared(x, std::make_shared<library_on>(stream::adopt({raw}, cuda())));
        std::string told;
        const auto enqueue_behind = [&](auto...) { told = message_of<state_error>([&] { step(other_, x, z); }); };
        host_task(other_, enqueue_behind, inout<double>(z)).synchronize();
        EXPECT_THAT(told, HasSubstr("enqueue it after the task"));
        host_task(blocking_, enqueue_behind).synchronize();
        EXPECT_THAT(told, HasSubstr("nothing was thrown")) << "control";
        EXPECT_THAT(values_of<double>(x), Each(31));
    }
    cuda().synchronize();
    in.api().stream_destroy(raw);
}

/// If no other thread could put the work into the stream later, the call throws at once.
TEST_F(S6Cuda, O9AHostTaskIsRefusedWhatComesAfterItselfInTheDefaultStreamOfItsThread) {
    const time_limit limit(sanitized ? 120 : 10, "a host task that enqueues into its thread's default stream");
    array x = make(legacy_, 1);
    cuda().synchronize();
    const auto told_on = [&](const stream& s) {
        std::string told;
        host_task(s, [&] {
            told = message_of<state_error>([&] {
                const stream own = stream::adopt(number(2), cuda());
                step_in_place(own, x).synchronize();
            });
        }).synchronize();
        return told;
    };
    EXPECT_THAT(told_on(legacy_), HasSubstr("enqueue it into a stream that weir::stream(device) makes"));
    EXPECT_THAT(told_on(other_), HasSubstr("nothing was thrown")) << "control";
    EXPECT_THAT(values_of<double>(x), Each(11));
}

TEST_F(S6Cuda, AStreamWithNothingInItIsNotOverBeforeWhatItComesAfter) {
    array x = make(legacy_, 1);
    cuda().synchronize();
    fake_gate held(handle_of(legacy_));
    const completion written = step_in_place(legacy_, x);
    const event behind = blocking_.record();
    cuda().state(detail::key).driver().look_at_all();
    EXPECT_FALSE(behind.done());
    held.open();
    behind.synchronize();
    EXPECT_TRUE(written.done());
}

TEST_F(S6Cuda, WorkThatIsHeldInWeirIsOrderedAsWell) {
    const ordering_scope manual(ordering_mode::manual);
    array x = make(blocking_, 1);
    array y = make(legacy_, 0);
    cuda().synchronize();
    testing::gate gate;
    gate.hold(blocking_);  // not a gate of the driver's: what comes next does not enter the stream
    step_in_place(blocking_, x);
    // Opened once the next call is seen to wait. That call waits until its operation can enter the stream, since others use that stream,
    // too (rule O9). Without that wait the operation is over before the gate opens.
    set_watchdog(std::chrono::milliseconds(4), [&](const std::string&) { gate.open(); });
    step(legacy_, y, x);
    legacy_.synchronize();
    set_watchdog(std::chrono::seconds(60));
    gate.open();
    EXPECT_THAT(values_of<double>(y), Each(111));
}

TEST_F(S6Cuda, ForeignWorkInALegacyStreamIsNotWaitedForTwice) {
    fake_cuda::forget_calls();
    blocking_.wait(legacy_);
    legacy_.wait(blocking_);
    EXPECT_EQ(fake_cuda::calls("cuStreamWaitEvent"), 0U);
    const fake_gate held(handle_of(legacy_));
    array x = make(legacy_, 1);
    other_.wait(legacy_);
    EXPECT_EQ(fake_cuda::calls("cuStreamWaitEvent"), 1U) << "control";
}

TEST_F(S6Cuda, V1CheckCountsItAsTheProgramsOwn) {
    EXPECT_EQ(races(legacy_, blocking_), "none");
    EXPECT_EQ(races(blocking_, legacy_), "none");
    EXPECT_EQ(races(stream::adopt(number(2), cuda()), legacy_), "none");
    EXPECT_EQ(races(legacy_, other_), "default-stream");
    EXPECT_EQ(races(other_, legacy_), "default-stream");
    EXPECT_EQ(races(stream::adopt(number(2), cuda()), other_), "default-stream");
    EXPECT_EQ(races(current_stream(cuda()), other_), "default-stream");
    EXPECT_EQ(races(other_, current_stream(cuda())), "default-stream");
    EXPECT_EQ(races(current_stream(cuda()), legacy_), "default-stream");
    EXPECT_EQ(races(blocking_, other_), "RAW");
    EXPECT_EQ(races(blocking_, stream(cuda(), {.blocking = true})), "RAW");
}

TEST_F(S6Cuda, AThreadsDefaultStreamIsForThatThread) {
    const stream mine = stream::adopt(number(2), cuda());
    array x = make(mine, 1);
    std::thread([&] {
        EXPECT_NE(stream::adopt(number(2), cuda()), mine);
        EXPECT_THAT(message_of<argument_error>([&] { step_in_place(mine, x); }),
                    HasSubstr("the default stream of another thread"));
        EXPECT_THROW(mine.synchronize(), argument_error);
        EXPECT_FALSE(mine.done());
        // Other streams wait for it by events that it has recorded itself.
        EXPECT_THAT(values_of<double>(x), Each(1));
    }).join();
    step_in_place(mine, x);
    EXPECT_THAT(values_of<double>(x), Each(11));
}

TEST_F(S6Cuda, ADeviceIsSynchronizedWhileAnotherThreadHasItsDefaultStream) {
    const stream mine = stream::adopt(number(2), cuda());
    array x = make(mine, 1);
    mine.synchronize();
    auto held = std::make_unique<fake_gate>(handle_of(mine));
    const completion step = step_in_place(mine, x);
    std::promise<void> begins;
    std::thread waits([&] {
        EXPECT_FALSE(step.done()) << "control";
        begins.set_value();
        cuda().synchronize();
        EXPECT_TRUE(step.done());
    });
    begins.get_future().wait();
    held.reset();
    waits.join();
    std::thread([&] { synchronize(); }).join();  // all devices
}

TEST_F(S6Cuda, AThreadsDefaultStreamIsNotThatOfALaterThreadWithTheSameId) {
    std::thread::id id;
    std::optional<stream> former;
    std::optional<array> x;
    std::thread([&] {
        id = std::this_thread::get_id();
        former = stream::adopt(number(2), cuda());
        x = make(*former, 1);
        former->synchronize();
    }).join();
    // Some thread gets the id of the former one: threads with other ids stay until then.
    std::promise<void> found;
    const std::shared_future<void> is_found(found.get_future());
    std::vector<std::thread> later;
    bool is_same = false;
    for (int tries = 0; tries < 100 && !is_same; ++tries) {
        std::promise<bool> told;
        std::future<bool> answer = told.get_future();
        later.emplace_back([&, told = std::move(told)]() mutable {
            const bool has_its_id = std::this_thread::get_id() == id;
            if (has_its_id) {
                EXPECT_THAT(message_of<argument_error>([&] { step_in_place(*former, *x); }),
                            HasSubstr("the default stream of another thread"));
            }
            told.set_value(has_its_id);
            is_found.wait();
        });
        is_same = answer.get();
    }
    found.set_value();
    for (std::thread& each : later) {
        each.join();
    }
    if (!is_same) {
        GTEST_SKIP() << "the system gives no id again";
    }
}

}  // namespace
}  // namespace weir::test
