// Streams of a CUDA device as programs use them, on the driver that WEIR_CUDA_DRIVER names: the fake one as a rule, whose
// gates make races certain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "backend/cuda/driver.hpp"
#include "runtime/device_state.hpp"
#include "support/messages.hpp"
#include "unit/cuda_support.hpp"

namespace weir::test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

namespace gpu = backend::cuda;

const gpu::device_context& context() { return gpu::context_of(cuda().state().driver()); }

#define WEIR_NEEDS_FAKE()                                                 \
    if (!fake_cuda::in_use()) {                                           \
        GTEST_SKIP() << "needs the gates or counters of the fake driver"; \
    }

TEST(CudaStream, HasADeviceAPriorityAndAName) {
    const stream s(cuda(), {.priority = -1, .name = "first"});
    EXPECT_EQ(s.device(), cuda(0));
    EXPECT_THAT(s.to_string(), HasSubstr("<weir.stream cuda:0"));
    EXPECT_EQ(cuda().kind(), device_kind::cuda);
    EXPECT_EQ(device::from_name("cuda:0"), cuda());
    EXPECT_THAT(message_of<argument_error>([] { static_cast<void>(cuda(99)); }),
                HasSubstr("there is no device cuda:99"));
}

TEST(CudaStream, S1AStreamRunsItsOperationsInOrder) {
    const stream s(cuda());
    const array x = make(s, 1);
    for (int i = 0; i < 5; ++i) {
        step_in_place(s, x);
    }
    EXPECT_THAT(values_of<double>(x), Each(111111));
}

TEST(CudaStream, O1AWriteOnOneStreamIsSeenOnAnother) {
    WEIR_NEEDS_FAKE();
    const stream a(cuda());
    const stream b(cuda());
    const array x = make(a, 1);
    const array y = make(b, 0);
    cuda().synchronize();
    {
        const fake_gate held(handle_of(a));
        step_in_place(a, x);
        const completion done = step(b, y, x);
        // However long the writer takes: the reader has had its chance to go ahead.
        fake_cuda::settle(handle_of(b));
        EXPECT_FALSE(done.done()) << "it waits on the device, and the host does not";
    }
    EXPECT_THAT(values_of<double>(y), Each(111));
}

TEST(CudaStream, O1ControlWithoutOrderingTheOtherStreamReadsWhatWasBefore) {
    WEIR_NEEDS_FAKE();
    const ordering_scope manual(ordering_mode::manual);
    const stream a(cuda());
    const stream b(cuda());
    const array x = make(a, 1);
    const array y = make(b, 0);
    cuda().synchronize();
    fake_gate held(handle_of(a));
    step_in_place(a, x);
    step(b, y, x).synchronize();
    held.open();
    cuda().synchronize();
    EXPECT_THAT(values_of<double>(y), Each(11));
}

TEST(CudaStream, O2TransitiveWaitsAreNotIssued) {
    WEIR_NEEDS_FAKE();
    const stream a(cuda());
    const stream b(cuda());
    const stream c(cuda());
    const array x = make(a, 1);
    const array y = make(b, 0);
    cuda().synchronize();
    const fake_gate held(handle_of(a));
    fake_cuda::forget_calls();
    step_in_place(a, x);
    step(b, y, x);
    step(c, x, y);  // after both: the wait for b implies the one for a
    EXPECT_EQ(fake_cuda::calls("cuStreamWaitEvent"), 2U);
}

TEST(CudaStream, O4OneStreamMakesNoEventCallForOrdering) {
    WEIR_NEEDS_FAKE();
    const stream s(cuda());
    const array x = make(s, 1);
    s.synchronize();
    constexpr unsigned launches = 1000;
    const fake_gate held;  // nothing completes meanwhile, so that no more can be said than while it runs
    fake_cuda::forget_calls();
    for (unsigned i = 0; i < launches; ++i) {
        detail::submit_work(s, runtime::work_kind::device, detail::native_task{[] {}}, inout<double>(x));
    }
    EXPECT_EQ(fake_cuda::calls("cuStreamWaitEvent"), 0U);
    // Now and then somebody looks how far the stream is: an event for many operations.
    EXPECT_LT(fake_cuda::calls("cuEventRecord"), launches / 4);
}

TEST(CudaStream, O7AWaitCoversTheAccessAndNotWorkOfOthersBehindIt) {
    WEIR_NEEDS_FAKE();
    const stream a(cuda());
    const stream b(cuda());
    const array x = make(a, 1);
    const array y = make(b, 0);
    const array z = make(a, 0);
    cuda().synchronize();
    // Work of others that waits for a word of memory, which the host writes only later.
    void* word = nullptr;
    const gpu::context& in = context();
    const gpu::in_context here(in);
    in.expect(in.api().host_alloc(&word, 8, gpu::host_alloc_mapped), "cuMemHostAlloc");
    auto* const flag = ::new (word) std::atomic<std::uint64_t>(0);
    step_in_place(a, x);
    access(a, inout<double>(z), [&](native_stream on, auto) {
        in.expect(in.api().stream_wait_value(static_cast<gpu::stream_handle>(on.handle),
                                             reinterpret_cast<gpu::device_pointer>(word), 1,
                                             gpu::wait_value_greater_or_equal),
                  "cuStreamWaitValue64");
    });
    // Reads what was written before the gate: an event recorded only now, at the end of the stream, would never come.
    step(b, y, x).synchronize();
    EXPECT_FALSE(a.done());
    flag->store(1);
    a.synchronize();
    EXPECT_THAT(values_of<double>(y), Each(111));
    in.api().host_free(word);
}

TEST(CudaStream, O9WorkBehindTheCpuIsHeldAndTheCallerIsNot) {
    const stream host(cpu());
    const stream s(cuda());
    const array x = make(host, 2);
    const array y = make(s, 0);
    host.synchronize();
    testing::gate held;
    held.hold(host);
    fill(host, x, 3);
    const completion copied = copy(s, y, x);
    const completion after = step_in_place(s, y);
    EXPECT_FALSE(copied.done());
    EXPECT_FALSE(after.done());
    held.open();
    EXPECT_THAT(values_of<double>(y), Each(31));
}

TEST(CudaStream, HostTasksRunInStreamOrderBetweenKernels) {
    const stream s(cuda());
    const array x = make(s, 1);
    std::vector<double> seen;
    const array mirror = make(stream(cpu()), 0);
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
    const array x = make(s, 1);
    const array y = make(s, 0);
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
    const array x = make(s, 1);
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
    const array x = make(s, 1);
    EXPECT_THAT(message_of<argument_error>([&] {
                    parallel_for(
                        s, elements, [](std::size_t, std::span<double>) {}, inout<double>(x));
                }),
                HasSubstr("weir::kernel"));
    EXPECT_THAT(values_of<double>(x), Each(1));
}

TEST(CudaStream, S4ABusyStreamThatIsDroppedEndsItsWorkAndGoes) {
    WEIR_NEEDS_FAKE();
    cuda().synchronize();
    const stream other(cuda());
    const array x = make(other, 1);
    other.synchronize();
    const std::size_t before = fake_cuda::live(fake_thing::streams);
    {
        const fake_gate held;
        stream busy(cuda());
        step_in_place(busy, x);
    }
    EXPECT_THAT(values_of<double>(x), Each(11));
    while (fake_cuda::live(fake_thing::streams) > before) {
        std::this_thread::yield();  // somebody looks now and then
    }
}

TEST(CudaStream, TenThousandStreamsAndEventsComeAndGo) {
    const stream s(cuda());
    const array x = make(s, 0);
    s.synchronize();
    const bool counts = fake_cuda::in_use();
    const std::size_t before = counts ? fake_cuda::live(fake_thing::streams) : 0;
    for (int i = 0; i < 10'000; ++i) {
        const stream each(cuda());
        const event e = each.record();
        s.wait(e);
        if (i % 100 == 0) {
            step_in_place(each, x);
        }
    }
    cuda().synchronize();
    if (counts) {
        while (fake_cuda::live(fake_thing::streams) > before) {
            std::this_thread::yield();
        }
        EXPECT_LT(fake_cuda::live(fake_thing::events), 1000U);
    }
}

TEST(CudaStream, EightThreadsOnOneStreamAndOnMany) {
    const stream shared(cuda());
    const array together = make(shared, 0);
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
    const gpu::context& in = context();
    const gpu::in_context here(in);
    gpu::stream_handle raw = nullptr;
    in.expect(in.api().stream_create(&raw, gpu::stream_non_blocking, 0), "cuStreamCreate");
    const stream a = stream::adopt(native_stream{raw}, cuda());
    const stream b = stream::adopt(native_stream{raw}, cuda());
    EXPECT_EQ(a, b);
    EXPECT_THAT(a.to_string(), HasSubstr("adopted"));
    EXPECT_EQ(a.native().handle, raw);
    in.api().stream_destroy(raw);
    gpu::stream_handle next = nullptr;
    in.expect(in.api().stream_create(&next, gpu::stream_non_blocking, 0), "cuStreamCreate");
    const stream c = stream::adopt(native_stream{next}, cuda());
    EXPECT_NE(a, c) << (raw == next ? "the handle is used again" : "");
    in.api().stream_destroy(next);
}

TEST(CudaAdopt, S5WhatIsNoStreamIsRefused) {
    WEIR_NEEDS_FAKE();  // the real driver may end the process
    int nothing = 0;
    EXPECT_THROW(static_cast<void>(stream::adopt(native_stream{&nothing}, cuda())), argument_error);
    EXPECT_THROW(static_cast<void>(stream::adopt(native_stream{nullptr}, cpu())), argument_error);
}

TEST(CudaAdopt, O2WorkThatOthersPutIntoAStreamIsTakenIntoAccount) {
    WEIR_NEEDS_FAKE();
    const gpu::context& in = context();
    const gpu::in_context here(in);
    gpu::stream_handle raw = nullptr;
    in.expect(in.api().stream_create(&raw, gpu::stream_non_blocking, 0), "cuStreamCreate");
    {
        const stream theirs = stream::adopt(native_stream{raw}, cuda());
        const stream mine(cuda());
        const array x = make(mine, 1);
        const array y = make(mine, 0);
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
    const array x = make(s, 1);
    s.synchronize();
    const gpu::context& in = context();
    const gpu::in_context here(in);
    auto* const raw = static_cast<gpu::stream_handle>(s.native().handle);
    const fake_gate held(raw);
    step_in_place(s, x);
    const std::size_t ours = fake_cuda::pending(raw);
    EXPECT_GE(ours, 1U);
    // What the program itself launches now comes after it.
    in.expect(in.api().fill8_async(reinterpret_cast<gpu::device_pointer>(x.device_data()), 0, x.nbytes(), raw),
              "cuMemsetD8Async");
    EXPECT_GT(fake_cuda::pending(raw), ours);
}

TEST(CudaAdopt, O2ThePointOfAnOperationIsBeforeWhatOthersPutBehindIt) {
    WEIR_NEEDS_FAKE();
    const stream s(cuda());
    const stream b(cuda());
    const array x = make(s, 1);
    const array y = make(b, 0);
    cuda().synchronize();
    const gpu::context& in = context();
    const gpu::in_context here(in);
    auto* const raw = static_cast<gpu::stream_handle>(s.native().handle);
    void* word = nullptr;
    in.expect(in.api().host_alloc(&word, 8, gpu::host_alloc_mapped), "cuMemHostAlloc");
    auto* const flag = ::new (word) std::atomic<std::uint64_t>(0);
    step_in_place(s, x);
    // Theirs, behind Weir's: waits for a word that the host writes only later.
    in.expect(in.api().stream_wait_value(raw, reinterpret_cast<gpu::device_pointer>(word), 1,
                                         gpu::wait_value_greater_or_equal),
              "cuStreamWaitValue64");
    step(b, y, x).synchronize();
    flag->store(1);
    s.synchronize();
    EXPECT_THAT(values_of<double>(y), Each(111));
    in.api().host_free(word);
}

TEST(CudaAdopt, C8ClosingAnAdoptedStreamLeavesTheDriversAlone) {
    const gpu::context& in = context();
    const gpu::in_context here(in);
    gpu::stream_handle raw = nullptr;
    in.expect(in.api().stream_create(&raw, gpu::stream_non_blocking, 0), "cuStreamCreate");
    {
        stream theirs = stream::adopt(native_stream{raw}, cuda());
        const array x = make(theirs, 1);
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
    const array x = make(legacy, 1);
    const stream other(cuda());
    step_in_place(legacy, x);
    step_in_place(other, x);
    EXPECT_THAT(values_of<double>(x), Each(111));
}

}  // namespace
}  // namespace weir::test
