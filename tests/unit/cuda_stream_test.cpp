// Streams of a CUDA device as programs use them, on the driver that WEIR_CUDA_DRIVER names: usually the fake one, whose
// gates make races certain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "backend/cuda/streams/driver_stream.hpp"
#include "backend/cuda/streams/queue.hpp"
#include "backend/cuda/streams/submission_queues.hpp"
#include "support/effort.hpp"
#include "support/messages.hpp"
#include "support/time_limit.hpp"
#include "unit/cuda_support.hpp"

namespace weir::test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

TEST(CudaStream, HasADeviceAPriorityAndAName) {
    const stream s(cuda(), {.priority = -1, .name = "first"});
    EXPECT_EQ(s.device(), cuda(0));
    EXPECT_THAT(s.to_string(), HasSubstr("<weir.stream cuda:0"));
    EXPECT_EQ(cuda().kind(), device_kind::cuda);
    EXPECT_EQ(device::from_name("cuda:0"), cuda());
    EXPECT_THAT(message_of<argument_error>([] { static_cast<void>(cuda(99)); }),
                HasSubstr("there is no device cuda:99"));
}

/// The driver takes a handle for an address before it checks it: on a GPU the process would end.
TEST(CudaStream, ANumberThatIsNoAddressIsNoHandle) {
    const std::array<std::uintptr_t, 4> numbers{3, 17, 4095, ~std::uintptr_t{0}};
    for (const std::uintptr_t number : numbers) {
        const auto adopt = [number] {
            static_cast<void>(stream::adopt(native_stream{reinterpret_cast<void*>(number)}, cuda()));
        };
        EXPECT_THAT(message_of<argument_error>(adopt), HasSubstr("a CUstream is an address")) << number;
    }
}

TEST(CudaStream, S1AStreamRunsItsOperationsInOrder) {
    const stream s(cuda());
    array x = make(s, 1);
    for (int i = 0; i < 5; ++i) {
        step_in_place(s, x);
    }
    EXPECT_THAT(values_of<double>(x), Each(111111));
}

TEST(CudaStream, S1NoOperationEntersTheDriversStreamPastOneThatIsHeld) {
    WEIR_NEEDS_FAKE();
    const time_limit limit(sanitized ? 120 : 10, "a stream whose operations overtook each other");
    const stream s(cuda());
    array x = make(s, 1);
    step_in_place(s, x);  // loads the kernel
    s.synchronize();
    const auto launches = [] { return fake_cuda::calls("cuLaunchKernel") + fake_cuda::calls("cuLaunchKernelEx"); };
    testing::gate held;
    held.hold(s);
    fake_cuda::forget_calls();
    step_in_place(s, x);
    ASSERT_EQ(launches(), 0U);
    held.open();
    EXPECT_THAT(values_of<double>(x), Each(111));
    EXPECT_EQ(launches(), 1U);
}

TEST(CudaStream, HostTasksRunInStreamOrderBetweenKernels) {
    const stream s(cuda());
    array x = make(s, 1);
    std::vector<double> seen;
    array mirror = make(stream(cpu()), 0);
    mirror.device().synchronize();
    step_in_place(s, x);
    copy(s, mirror, x);
    host_task(
        s, [&](std::span<const double> values) { seen.assign(values.begin(), values.end()); }, in<double>(mirror));
    step_in_place(s, x);
    s.synchronize();
    EXPECT_THAT(seen, Each(11));
    EXPECT_EQ(seen.size(), std::size_t{elements});
    EXPECT_THAT(values_of<double>(x), Each(111));
}

TEST(CudaStream, AFailingHostTaskPoisonsAndWhatDependsDoesNotRun) {
    const stream s(cuda());
    array x = make(s, 1);
    array y = make(s, 0);
    s.synchronize();
    host_task(
        on(s).label("broken"), [](auto...) { throw std::runtime_error("no luck"); }, inout<double>(x));
    step(s, y, x);
    EXPECT_THAT(message_of<operation_error>([&] { static_cast<void>(y.read<double>()); }), HasSubstr("no luck"));
    EXPECT_NO_THROW(s.synchronize()) << "somebody has been told";
    fill(s, y, 4);
    EXPECT_THAT(values_of<double>(y), Each(4)) << "written anew";
}

TEST(CudaStream, TimedEventsTellTheDevicesTime) {
    const stream s(cuda());
    array x = make(s, 1);
    s.synchronize();
    const event first = s.record({.timing = true});
    for (int i = 0; i < 20; ++i) {
        step_in_place(s, x);
    }
    const event last = s.record({.timing = true});
    last.wait();
    EXPECT_GT(first.elapsed_ms(last), 0);
    EXPECT_LT(first.elapsed_ms(last), 60'000);
}

TEST(CudaStream, CodeOfTheHostIsRefusedWithTheMend) {
    const stream s(cuda());
    array x = make(s, 1);
    EXPECT_THAT(message_of<argument_error>([&] {
                    parallel_for(
                        s, elements, [](std::size_t, std::span<double>) {}, inout<double>(x));
                }),
                HasSubstr("weir::kernel"));
    EXPECT_THAT(values_of<double>(x), Each(1));
}

TEST(CudaStream, S4ABusyStreamThatIsDroppedEndsItsWorkAndGoes) {
    WEIR_NEEDS_FAKE();
    const time_limit limit(10, "what a dropped stream has left to do");
    cuda().synchronize();
    const stream other(cuda());
    array x = make(other, 1);
    other.synchronize();
    const std::size_t before = fake_cuda::live(fake_thing::streams);
    {
        const fake_gate held;
        stream busy(cuda());
        step_in_place(busy, x);
    }
    EXPECT_THAT(values_of<double>(x), Each(11));
    EXPECT_TRUE(streams_get_down_to(before));
}

TEST(CudaStream, S4ADroppedStreamGoesThoughNoCallAsksForWhatItDid) {
    WEIR_NEEDS_FAKE();
    static_cast<void>(step_kernel());
    cuda().synchronize();
    const std::size_t before = fake_cuda::live(fake_thing::streams);
    {
        const stream lonely(cuda());
        step_in_place(lonely, make(lonely, 1));
    }
    EXPECT_TRUE(streams_get_down_to(before));
}

/// A stream that repeatedly waits for another one keeps the other one's handle, and only the latest such handle.
TEST(CudaStream, S4AStreamThatIsGoneIsNotKeptByAWaitForAnother) {
    WEIR_NEEDS_FAKE();
    cuda().synchronize();
    const stream keeper(cuda());
    array x = make(keeper, 0);
    keeper.synchronize();
    const std::size_t before = fake_cuda::live(fake_thing::streams);
    {
        const stream waits(cuda());
        for (int i = 0; i < 20; ++i) {
            const fake_gate held;  // so that there is something to wait for
            const stream each(cuda());
            step_in_place(each, x);
            step_in_place(waits, x);
        }
        waits.synchronize();
        EXPECT_TRUE(streams_get_down_to(before + 2)) << "`waits`, and the last one it waited for";
    }
    EXPECT_TRUE(streams_get_down_to(before));
}

TEST(CudaStream, O2EachOfTwoStreamsThatOneWaitsForInTurnIsWaitedFor) {
    WEIR_NEEDS_FAKE();
    const stream waits(cuda());
    const stream others[] = {stream(cuda()), stream(cuda())};
    array z = make(waits, 0);
    for (int i = 0; i < 4; ++i) {
        const stream& each = others[i % 2];
        array x = make(each, 0);
        each.synchronize();
        fake_gate held(handle_of(each));
        step_in_place(each, x);
        step(waits, z, x);
        fake_cuda::settle(handle_of(others[(i + 1) % 2]));  // an event that it waits for by mistake may be there
        fake_cuda::settle(handle_of(waits));
        held.open();
        EXPECT_THAT(values_of<double>(z), Each(11));
        step(waits, z, z);  // another operation before the next round
    }
}

/// Runs until a device_flag is raised.
kernel spins() {
    return kernel::from_source(R"(
extern "C" __global__ void spin(unsigned long long flag, double* y) {
    while (*reinterpret_cast<volatile unsigned long long*>(flag) == 0) {
    }
    y[0] = 7;
}
)",
                               "spin");
}

/// A caller that asks for an operation gets its end, and not the end of work that entered the stream later.
TEST(CudaStream, O7APollOfAnOperationDoesNotWaitForWhatEntersTheStreamLater) {
    const time_limit limit(sanitized ? 120 : 10, "a program that asks for an operation with a longer one behind it");
    const kernel spin = spins();
    const stream a(cuda());
    array x = make(a, 1);
    array y = make(a, 0);
    a.synchronize();
    device_flag from_then_on;
    device_flag until;
    from_then_on.hold(static_cast<gpu::stream_handle>(handle_of(a)));
    const completion wanted = step_in_place(a, x);
    EXPECT_FALSE(wanted.done());
    const completion longer = launch(a, spin, {1, 1}, until.address(), out<double>(y));
    from_then_on.raise();
    while (!wanted.done()) {
        std::this_thread::yield();
    }
    EXPECT_FALSE(longer.done());
    until.raise();
    longer.synchronize();
    EXPECT_THAT(values_of<double>(x), Each(11));
}

/// The host waits for an operation that Weir holds. The work that enters the driver's stream right behind it ends only after that wait.
TEST(CudaStream, O7TheHostWaitsForAnOperationAndNotForWhatEntersTheStreamRightBehindIt) {
    const time_limit limit(sanitized ? 120 : 10, "a host that waits for an operation with a longer one behind it");
    const kernel spin = spins();
    const stream a(cuda());
    array x = make(a, 1);
    array y = make(a, 0);
    a.synchronize();
    device_flag until;
    testing::gate held;
    held.hold(a);
    const completion wanted = step_in_place(a, x);
    std::thread waits([&] { wanted.synchronize(); });
    const auto driver_stream = gpu::submission_queues::find(a.state(detail::key).timeline())->of();
    while (driver_stream->wanted.load() < wanted.epoch(detail::key)) {
        std::this_thread::yield();
    }
    const completion longer = launch(a, spin, {1, 1}, until.address(), out<double>(y));
    std::optional<fake_gate> until_both_are_there;  // else the first one may be over before the second is there
    if (fake_cuda::in_use()) {
        until_both_are_there.emplace(handle_of(a));
    }
    held.open();
    while (driver_stream->submitted() < longer.epoch(detail::key)) {
        std::this_thread::yield();
    }
    until_both_are_there.reset();
    waits.join();
    EXPECT_TRUE(wanted.done());
    EXPECT_FALSE(longer.done());
    until.raise();
    longer.synchronize();
    EXPECT_THAT(values_of<double>(x), Each(11));
}

TEST(CudaStream, O4OneEventServesAllWaitsForAnOperation) {
    WEIR_NEEDS_FAKE();
    const stream writes(cuda());
    const stream reads(cuda());
    const stream others(cuda());
    array x = make(writes, 0);
    array z = make(reads, 0);
    array u = make(others, 0);
    cuda().synchronize();
    for (int i = 0; i < 40; ++i) {          // first new events, then reused ones
        fake_gate held(handle_of(writes));  // else it may be over before the second asks
        step_in_place(writes, x);
        step(reads, z, x);
        fake_cuda::forget_calls();
        step(others, u, x);
        ASSERT_EQ(fake_cuda::own_calls("cuEventRecord"), 0U) << "time " << i;
        ASSERT_EQ(fake_cuda::own_calls("cuStreamWaitEvent"), 1U) << "time " << i;
        held.open();
        cuda().synchronize();
    }
}

// A stream that waits for the same stream as before takes a shorter path.

class CudaStreamThatWaitsAgain : public ::testing::Test {
protected:
    void SetUp() override {
        WEIR_NEEDS_FAKE();
        // Until its stream's events are used again: only then does the waiting stream get one without a query to the driver.
        cuda().synchronize();
        for (int i = 0; i < 20; ++i) {
            step(others, u, y);
            step(reads, z, u);
            cuda().synchronize();  // else the streams keep more and more events
        }
        for (int i = 0; i < 20; ++i) {
            step(writes, x, y);
            step(reads, z, x);
            cuda().synchronize();
        }
    }
    /// The same operation is waited for by `first` and by `second`, which needs no event of its own.
    void expect_one_event(const stream& first, const array& of_first, const stream& second,
                          const array& of_second) const {
        fake_gate held(handle_of(writes));
        step_in_place(writes, x);
        step(first, of_first, x);
        fake_cuda::forget_calls();
        step(second, of_second, x);
        EXPECT_EQ(fake_cuda::own_calls("cuEventRecord"), 0U);
        EXPECT_EQ(fake_cuda::own_calls("cuStreamWaitEvent"), 1U);
        settle(second);
        held.open();
        EXPECT_THAT(values_of<double>(of_second), Each(111));
    }
    /// Runs what `other` puts into the driver's stream and what does not wait for held work.
    static void settle(const stream& other) { fake_cuda::settle(handle_of(other)); }

    const stream writes{cuda()};
    const stream reads{cuda()};
    const stream others{cuda()};
    array x = make(writes, 0);
    array z = make(reads, 0);
    array y = make(reads, 0);
    array u = make(others, 0);
};

TEST_F(CudaStreamThatWaitsAgain, O2ItWaitsForEachOperationOnce) {
    double expected = 11;
    for (int i = 0; i < 12; ++i) {  // more rounds than the events that are kept
        expected = expected * 10 + 1;
        fake_gate held(handle_of(writes));
        step_in_place(writes, x);
        fake_cuda::forget_calls();
        step(reads, z, x);
        step_in_place(reads, y);  // has nothing to wait for
        EXPECT_EQ(fake_cuda::own_calls("cuStreamWaitEvent"), 1U);
        settle(reads);
        held.open();
        EXPECT_THAT(values_of<double>(z), Each(expected)) << "time " << i;
    }
}

TEST_F(CudaStreamThatWaitsAgain, OthersGetItsEvent) { expect_one_event(reads, z, others, u); }

TEST_F(CudaStreamThatWaitsAgain, ItGetsTheEventOfOthers) { expect_one_event(others, u, reads, z); }

TEST_F(CudaStreamThatWaitsAgain, ItWaitsForWhatIsNotInTheDriversStreamYet) {
    testing::gate held;
    held.hold(writes);
    step_in_place(writes, x);
    step(reads, z, x);
    settle(reads);
    held.open();
    EXPECT_THAT(values_of<double>(z), Each(111));
}

TEST_F(CudaStreamThatWaitsAgain, ItWaitsForAnotherThanBefore) {
    fake_gate held(handle_of(others));
    step_in_place(others, u);
    step(reads, z, u);
    settle(writes);  // an event that it waits for by mistake may be there
    settle(reads);
    held.open();
    EXPECT_THAT(values_of<double>(z), Each(111));
}

TEST_F(CudaStreamThatWaitsAgain, WhatTheDriverRefusesIsAskedForAgain) {
    const time_limit limit(20, "a stream whose wait was refused");
    double expected = 11;
    for (const char* const call : {"cuEventRecord", "cuStreamWaitEvent"}) {
        expected = expected * 10 + 1;
        fake_gate held(handle_of(writes));
        step_in_place(writes, x);
        fake_cuda::forget_calls();
        fake_cuda::fail_own(call, 1);
        step(reads, z, x);
        EXPECT_EQ(fake_cuda::own_calls("cuEventRecord"), 2U) << call;
        EXPECT_EQ(fake_cuda::own_calls(call), 2U);
        settle(reads);
        held.open();
        EXPECT_THAT(values_of<double>(z), Each(expected)) << call;
    }
}

TEST_F(CudaStreamThatWaitsAgain, AWaitThatIsCalledOffLeavesTheEventsThatThereAre) {
    const stream third(cuda());
    array v = make(third, 0);
    fake_gate runs(handle_of(writes));
    step_in_place(writes, x);
    step(reads, z, x);
    testing::gate held;
    held.hold(others);
    step_in_place(others, u);
    compute(reads, binary_operation::add, x, u,
            z);  // for `writes`, and for work that no wait of the driver's can express yet
    fake_cuda::forget_calls();
    step(third, v, x);
    EXPECT_EQ(fake_cuda::own_calls("cuEventRecord"), 0U);
    settle(third);
    held.open();
    runs.open();
    EXPECT_THAT(values_of<double>(v), Each(111));
    EXPECT_THAT(values_of<double>(z), Each(22));
}

TEST(CudaStream, TenThousandStreamsAndEventsComeAndGo) {
    const stream s(cuda());
    array x = make(s, 0);
    s.synchronize();
    const bool counts = fake_cuda::in_use();
    const std::size_t before = counts ? fake_cuda::live(fake_thing::streams) : 0;
    for (int i = 0; i < 10'000; ++i) {
        const stream each(cuda());
        const event e = each.record();
        s.wait(e);
        if (i % 100 == 0) {
            step_in_place(each, x);
            // Streams are destroyed by a thread of Weir's own, which may come late: not all of them are to be alive at once.
            EXPECT_TRUE(!counts || streams_get_down_to(before + 200));
        }
    }
    cuda().synchronize();
    if (counts) {
        EXPECT_TRUE(streams_get_down_to(before));
        // Only the stream that all others wait for may have as many events as a stream keeps.
        EXPECT_LT(fake_cuda::live(fake_thing::events), gpu::driver_stream_events::most + 1000);
    }
}

TEST(CudaStream, S4TheLastHandleGoesWhileAnotherThreadPutsItsWorkIntoTheStream) {
    const bool counts = fake_cuda::in_use();
    cuda().synchronize();
    const std::size_t before = counts ? fake_cuda::live(fake_thing::streams) : 0;
    std::atomic<int> ran{0};
    constexpr int times = 2000;
    for (int i = 0; i < times; ++i) {
        const stream each(cuda());
        host_task(each, [&ran] { ++ran; });  // by a thread of Weir's, which has no handle of the stream
    }
    cuda().synchronize();
    EXPECT_EQ(ran, times);
    EXPECT_TRUE(!counts || streams_get_down_to(before));
}

TEST(CudaStream, EightThreadsOnOneStreamAndOnMany) {
    const stream shared(cuda());
    array together = make(shared, 0);
    shared.synchronize();
    constexpr int threads = 8;
    constexpr int each = 50;
    std::vector<std::thread> all;
    std::vector<array> own;
    for (int i = 0; i < threads; ++i) {
        own.push_back(make(shared, 1));
    }
    for (int i = 0; i < threads; ++i) {
        all.emplace_back([&, i] {
            const stream mine(cuda());
            for (int k = 0; k < each; ++k) {
                compute(k % 2 == 0 ? shared : mine, binary_operation::add, own[static_cast<std::size_t>(i)], 1.0,
                        own[static_cast<std::size_t>(i)]);
                compute(k % 2 == 0 ? mine : shared, binary_operation::add, together, 1.0, together);
            }
        });
    }
    for (std::thread& one : all) {
        one.join();
    }
    EXPECT_THAT(values_of<double>(together), Each(threads * each));
    for (const array& one : own) {
        EXPECT_THAT(values_of<double>(one), Each(1 + each));
    }
}

TEST(CudaAdopt, S5TheSameHandleIsTheSameStreamAndARecycledOneIsNot) {
    const gpu::context& in = cuda_context();
    const gpu::in_context here(in);
    gpu::stream_handle raw = nullptr;
    in.expect(in.api().stream_create(&raw, gpu::stream_non_blocking, 0), "cuStreamCreate");
    const stream a = stream::adopt(native_stream{raw}, cuda());
    const stream b = stream::adopt(native_stream{raw}, cuda());
    EXPECT_EQ(a, b);
    EXPECT_THAT(a.to_string(), HasSubstr("adopted"));
    EXPECT_EQ(a.handle(), raw);
    in.api().stream_destroy(raw);
    gpu::stream_handle next = nullptr;
    in.expect(in.api().stream_create(&next, gpu::stream_non_blocking, 0), "cuStreamCreate");
    const stream c = stream::adopt(native_stream{next}, cuda());
    EXPECT_NE(a, c) << (raw == next ? "the handle is used again" : "");
    in.api().stream_destroy(next);
}

TEST(CudaAdopt, S5AHandleThatWasGivenOutIsTheStreamThatGaveIt) {
    const gpu::in_context here(cuda_context());
    std::optional<stream> own(cuda());
    void* const handle = own->handle();
    EXPECT_EQ(own->handle(), handle);
    {
        const stream again = stream::adopt(native_stream{handle}, cuda());
        EXPECT_EQ(again, *own);
        EXPECT_THAT(again.to_string(), HasSubstr("owned"));
        EXPECT_NE(again, stream(cuda()));
    }
    own.reset();
    // The driver's stream ends with the last owner; a later one at its address is another stream.
    const stream next(cuda());
    EXPECT_EQ(stream::adopt(native_stream{next.handle()}, cuda()), next);
}

TEST(CudaAdopt, S5WhatIsNoStreamIsRefused) {
    WEIR_NEEDS_FAKE();  // the real driver may end the process
    int nothing = 0;
    EXPECT_THROW(static_cast<void>(stream::adopt(native_stream{&nothing}, cuda())), argument_error);
    EXPECT_THROW(static_cast<void>(stream::adopt(native_stream{nullptr}, cpu())), argument_error);
}

TEST(CudaAdopt, O2WorkThatOthersPutIntoAStreamIsTakenIntoAccount) {
    WEIR_NEEDS_FAKE();
    const gpu::context& in = cuda_context();
    const gpu::in_context here(in);
    gpu::stream_handle raw = nullptr;
    in.expect(in.api().stream_create(&raw, gpu::stream_non_blocking, 0), "cuStreamCreate");
    {
        const stream theirs = stream::adopt(native_stream{raw}, cuda());
        const stream mine(cuda());
        array x = make(mine, 1);
        array y = make(mine, 0);
        cuda().synchronize();
        fake_gate held(raw);
        // Theirs, without Weir: x = 0x01010101...
        in.expect(in.api().fill8_async(reinterpret_cast<gpu::device_pointer>(x.device_data()), 1, x.nbytes(), raw),
                  "cuMemsetD8Async");
        mine.wait(theirs);
        const completion copied = copy(mine, y, x);
        EXPECT_FALSE(copied.done());
        EXPECT_FALSE(theirs.done());
        held.open();
        const host_view<const double> seen = y.read<double>();
        double wanted = 0;
        std::memset(&wanted, 1, sizeof wanted);
        EXPECT_THAT(std::vector<double>(seen.begin(), seen.end()), Each(wanted));
    }
    in.api().stream_destroy(raw);
}

TEST(CudaAdopt, O2WorkOfWeirIsInTheStreamWhenTheCallReturns) {
    WEIR_NEEDS_FAKE();
    const stream s(cuda());
    array x = make(s, 1);
    s.synchronize();
    const gpu::context& in = cuda_context();
    const gpu::in_context here(in);
    auto* const raw = static_cast<gpu::stream_handle>(s.handle());
    const fake_gate held(raw);
    step_in_place(s, x);
    const std::size_t ours = fake_cuda::pending(raw);
    EXPECT_GE(ours, 1U);
    // What the program itself launches now comes after it.
    in.expect(in.api().fill8_async(reinterpret_cast<gpu::device_pointer>(x.device_data()), 0, x.nbytes(), raw),
              "cuMemsetD8Async");
    EXPECT_GT(fake_cuda::pending(raw), ours);
}

/// Two idle streams, an array of each, and the first one's handle, which others have.
struct given_out {
    gpu::in_context here{cuda_context()};
    stream s{cuda()};
    stream b{cuda()};
    array x = make(s, 1);
    array y = make(b, 0);
    gpu::stream_handle raw = handle();

    [[nodiscard]] gpu::stream_handle handle() const {
        cuda().synchronize();
        return static_cast<gpu::stream_handle>(s.handle());
    }
};

TEST(CudaAdopt, O2ThePointOfAnOperationIsBeforeWhatOthersPutBehindIt) {
    WEIR_NEEDS_FAKE();
    given_out with;
    device_flag later;
    step_in_place(with.s, with.x);
    later.hold(with.raw);  // theirs, behind Weir's
    step(with.b, with.y, with.x).synchronize();
    later.raise();
    with.s.synchronize();
    EXPECT_THAT(values_of<double>(with.y), Each(111));
}

// The thread that completes an operation first releases what the operation owned. Until the operation is complete, other streams must find
// its event.
TEST(CudaAdopt, O2ThePointOfAnOperationThatIsBeingCompletedIsBeforeWhatOthersPutBehindIt) {
    WEIR_NEEDS_FAKE();
    given_out with;
    device_flag later;
    std::atomic<bool> is_let_go{false};
    std::atomic<bool> may_go_on{false};
    access(
        with.s,
        [owned = std::shared_ptr<void>(nullptr,
                                       [&](void*) {
                                           is_let_go = true;
                                           is_let_go.notify_all();
                                           may_go_on.wait(false);
                                       })](native_stream, std::span<double>) {},
        inout<double>(with.x));
    std::thread completes([&] { with.s.synchronize(); });
    is_let_go.wait(false);
    later.hold(with.raw);  // theirs, behind Weir's
    const completion done = step(with.b, with.y, with.x);
    fake_cuda::settle(handle_of(with.b));
    EXPECT_EQ(fake_cuda::pending(handle_of(with.b)), 0U) << "waits for what others put behind the operation";
    later.raise();
    may_go_on = true;
    may_go_on.notify_all();
    completes.join();
    done.synchronize();
    EXPECT_THAT(values_of<double>(with.y), Each(11));
}

TEST(CudaAdopt, O2ThePointOfWhatIsInTheStreamWhenTheHandleIsGivenOutIsBeforeWhatOthersPutBehindIt) {
    WEIR_NEEDS_FAKE();
    const stream s(cuda());
    const stream b(cuda());
    array x = make(s, 1);
    array y = make(b, 0);
    cuda().synchronize();
    device_flag later;
    fake_gate held(handle_of(s));
    step_in_place(s, x);
    later.hold(static_cast<gpu::stream_handle>(s.handle()));  // theirs, behind Weir's
    const completion done = step(b, y, x);
    held.open();
    EXPECT_TRUE(gets_over(done)) << "waits for what others put behind the operation";
    later.raise();
    done.synchronize();
    EXPECT_THAT(values_of<double>(y), Each(111));
}

/// Whether `condition` comes true, or `end` before that.
template <class Condition>
bool comes_before(Condition&& condition, const std::atomic<bool>& end) {
    while (!condition() && !end) {
        std::this_thread::yield();
    }
    return !end;
}

// One thread submits what another one enqueued. The other one may return only when the point behind its operation is in the stream as well.
TEST(CudaAdopt, O2ACallReturnsWhenThePointOfItsOperationIsInTheStream) {
    WEIR_NEEDS_FAKE();
    given_out with;
    array z = make(with.s, 1);
    with.s.synchronize();
    const auto is_stopped = [] { return fake_cuda::is_stopped(); };
    std::atomic<bool> passes_no_more{false};
    std::atomic<bool> has_returned{false};
    std::thread passes([&] {
        fake_cuda::stop("cuLaunchKernelEx");
        step_in_place(with.s, z);
        passes_no_more = true;
    });
    EXPECT_TRUE(comes_before(is_stopped, passes_no_more));
    const frontiers::epoch first = with.s.state(detail::key).tail().at.at;
    std::thread enqueues([&] {
        step_in_place(with.s, with.x);
        has_returned = true;
    });
    EXPECT_TRUE(comes_before([&] { return with.s.state(detail::key).tail().at.at > first; }, has_returned));
    fake_cuda::go_on("cuLaunchKernelEx");
    EXPECT_TRUE(comes_before(is_stopped, passes_no_more));
    fake_cuda::go_on("cuEventRecord");
    EXPECT_TRUE(comes_before(is_stopped, passes_no_more));
    constexpr int often = 20000;
    for (int i = 0; i < often && !has_returned; ++i) {
        std::this_thread::yield();
    }
    EXPECT_FALSE(has_returned) << "what the program puts into the stream now comes before the point";
    fake_cuda::go_on();
    passes.join();
    enqueues.join();
    with.s.synchronize();
    EXPECT_THAT(values_of<double>(with.x), Each(11));
}

/// What others put into a stream has its place in the stream's order, before host code, too. The task is certainly too early if it does not
/// wait: the gate is opened once a thread waits for the stream in the driver.
TEST(CudaAdopt, O9AHostTaskComesAfterWorkThatOthersPutIntoTheStream) {
    WEIR_NEEDS_FAKE();
    const time_limit limit(sanitized ? 120 : 10, "a host task behind work of others");
    given_out with;
    gpu::stream_handle raw = nullptr;
    cuda_context().expect(cuda_context().api().stream_create(&raw, gpu::stream_non_blocking, 0), "cuStreamCreate");
    {
        const stream adopted = stream::adopt(native_stream{raw}, cuda());
        for (const stream& one : {with.s, adopted}) {
            const auto waits = [] { return fake_cuda::calls("cuStreamSynchronize"); };
            const unsigned long long before = waits();
            fake_gate held(handle_of(one));
            cuda_context().expect(
                cuda_context().api().fill8_async(reinterpret_cast<gpu::device_pointer>(with.y.device_data()), 1,
                                                 with.y.nbytes(), static_cast<gpu::stream_handle>(handle_of(one))),
                "cuMemsetD8Async");
            std::atomic<bool> is_open{false};
            std::atomic<bool> has_run{false};
            std::atomic<bool> was_open{false};
            std::thread enqueues([&] {
                host_task(one, [&](auto...) {
                    was_open = is_open.load();
                    has_run = true;
                });
            });
            while (waits() == before && !has_run) {
                std::this_thread::yield();
            }
            is_open = true;
            held.open();
            enqueues.join();
            one.synchronize();
            EXPECT_TRUE(has_run);
            EXPECT_TRUE(was_open) << one.to_string();
        }
    }
    cuda_context().api().stream_destroy(raw);
}

TEST(CudaAdopt, C8ClosingAnAdoptedStreamLeavesTheDriversAlone) {
    const gpu::context& in = cuda_context();
    const gpu::in_context here(in);
    gpu::stream_handle raw = nullptr;
    in.expect(in.api().stream_create(&raw, gpu::stream_non_blocking, 0), "cuStreamCreate");
    {
        stream theirs = stream::adopt(native_stream{raw}, cuda());
        array x = make(theirs, 1);
        theirs.synchronize();
        theirs.close();
        EXPECT_THROW(step_in_place(theirs, x), state_error);
    }
    EXPECT_EQ(in.api().stream_synchronize(raw), gpu::success);
    in.api().stream_destroy(raw);
}

TEST(CudaAdopt, S6TheLegacyDefaultStreamIsAStreamLikeOthers) {
    const stream legacy = stream::adopt(native_stream{nullptr}, cuda());
    const stream again = stream::adopt(native_stream{gpu::legacy_stream()}, cuda());
    EXPECT_EQ(legacy, again) << "0 and 1 are the same";
    array x = make(legacy, 1);
    const stream other(cuda());
    step_in_place(legacy, x);
    step_in_place(other, x);
    EXPECT_THAT(values_of<double>(x), Each(111));
}

/// A static object that uses a stream when the process ends: made before Weir used the driver, it is destroyed after Weir's own statics.
class late_user {
public:
    void begin() {
        x_ = make(s_.emplace(cuda()), 1);
        step_in_place(*s_, *x_);
        s_->synchronize();
    }
    ~late_user() {
        const time_limit limit(sanitized ? 120 : 10, "a wait in a static destructor");
        std::promise<void> ran;
        fake_gate held(handle_of(*s_));
        step_in_place(*s_, *x_);
        host_task(*s_, [&ran] { ran.set_value(); });
        held.open();
        ran.get_future().wait();  // this thread does not poll itself
        std::fprintf(stderr, "the task ran\n");
    }

private:
    std::optional<stream> s_;
    std::optional<array> x_;
};

TEST(CudaEndDeathTest, StaticDestructorsMayWait) {
    WEIR_NEEDS_FAKE();
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            static_cast<void>(fake_cuda::calls());  // opens the driver
            static late_user one;
            one.begin();
            std::exit(0);
        },
        ::testing::ExitedWithCode(0), "the task ran");
}

}  // namespace
}  // namespace weir::test
