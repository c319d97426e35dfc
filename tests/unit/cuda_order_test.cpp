// The order of operations on streams of a CUDA device. The gates of the fake driver make races certain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "backend/cuda/device/driver.hpp"
#include "runtime/devices/device_state.hpp"
#include "unit/cuda_support.hpp"

namespace weir::test {
namespace {

using ::testing::Each;

TEST(CudaStream, O1AWriteOnOneStreamIsSeenOnAnother) {
    WEIR_NEEDS_FAKE();
    const stream a(cuda());
    const stream b(cuda());
    array x = make(a, 1);
    array y = make(b, 0);
    cuda().synchronize();
    {
        const fake_gate held(handle_of(a));
        step_in_place(a, x);
        const completion done = step(b, y, x);
        // However long the writer takes: the reader has had its chance to run first.
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
    array x = make(a, 1);
    array y = make(b, 0);
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
    array x = make(a, 1);
    array y = make(b, 0);
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
    array x = make(s, 1);
    s.synchronize();
    constexpr unsigned launches = 1000;
    const fake_gate held;  // nothing completes meanwhile, so no wait is left out because its target is complete
    fake_cuda::forget_calls();
    for (unsigned i = 0; i < launches; ++i) {
        detail::submit_work(s, runtime::work_kind::device, detail::native_task{[] {}}, inout<double>(x));
    }
    EXPECT_EQ(fake_cuda::calls("cuStreamWaitEvent"), 0U);
    // Now and then a thread polls the stream's progress: one event for many operations.
    EXPECT_LT(fake_cuda::calls("cuEventRecord"), launches / 4);
}

TEST(CudaStream, O7AWaitCoversTheAccessAndNotWorkOfOthersBehindIt) {
    WEIR_NEEDS_FAKE();
    const stream a(cuda());
    const stream b(cuda());
    array x = make(a, 1);
    array y = make(b, 0);
    array z = make(a, 0);
    cuda().synchronize();
    // Work of others that waits for a word of memory, which the host writes only later.
    device_flag later;
    step_in_place(a, x);
    access(
        a, [&](native_stream on, auto) { later.hold(static_cast<gpu::stream_handle>(on.handle)); }, inout<double>(z));
    // Reads what was written before the gate: an event recorded only now, at the end of the stream, would never complete.
    step(b, y, x).synchronize();
    EXPECT_FALSE(a.done());
    later.raise();
    a.synchronize();
    EXPECT_THAT(values_of<double>(y), Each(111));
}

TEST(CudaStream, O7SingleWaitsInAPipelineAreForTheChunkAndNotForThoseBehindIt) {
    WEIR_NEEDS_FAKE();
    const stream out(cuda());
    const stream in(cuda());
    array first = make(out, 1);
    array second = make(out, 1);
    array y = make(in, 0);
    cuda().synchronize();
    // The first such wait shows that chunks are waited for while others are behind them.
    {
        const fake_gate held(handle_of(out));
        step_in_place(out, first);
        step_in_place(out, second);
        step(in, y, first);
    }
    cuda().synchronize();
    for (int chunk = 0; chunk < 8 && !HasFailure(); ++chunk) {
        // An event recorded behind the second chunk comes too late for the first one.
        device_flag later;
        step_in_place(out, first);
        hold(out, later, second);
        step_in_place(out, second);
        const completion read = step(in, y, first);
        EXPECT_TRUE(gets_over(read)) << "piece " << chunk;
        EXPECT_FALSE(out.done());
        later.raise();
        cuda().synchronize();
    }
}

/// Many chunks that one stream works on, more than it keeps events at first. Another stream waits for one of them.
struct many_pieces {
    static constexpr std::size_t awaited = 5;
    stream out{cuda()};
    stream in{cuda()};
    std::vector<array> chunk;
    array y = make(in, 0);

    many_pieces() {
        for (int i = 0; i < 40; ++i) {
            chunk.push_back(make(out, 1));
        }
        cuda().synchronize();
    }
    /// One step on each chunk; returns the completion of the awaited one. If `later` is not null, an operation that waits for it follows
    /// that step: only an event right behind the step completes before it.
    [[nodiscard]] completion enqueue(const device_flag* later = nullptr) {
        completion over;
        for (std::size_t i = 0; i < chunk.size(); ++i) {
            const completion one = step_in_place(out, chunk[i]);
            if (i == awaited) {
                over = one;
                if (later != nullptr) {
                    hold(out, *later, chunk.back());
                }
            }
        }
        return over;
    }
};

TEST(CudaStream, O7AWaitForOneOfManyIsForThatOneOnceThereWereSome) {
    WEIR_NEEDS_FAKE();
    many_pieces of;
    for (int round = 0; round < 5; ++round) {
        const fake_gate held(handle_of(of.out));
        static_cast<void>(of.enqueue());
        step(of.in, of.y, of.chunk[of.awaited]);
    }
    cuda().synchronize();
    device_flag later;
    static_cast<void>(of.enqueue(&later));
    const completion read = step(of.in, of.y, of.chunk[of.awaited]);
    EXPECT_TRUE(gets_over(read));
    EXPECT_FALSE(of.out.done());
    later.raise();
    cuda().synchronize();
}

TEST(CudaStream, O7SoDoesTheHost) {
    WEIR_NEEDS_FAKE();
    many_pieces of;
    {
        const fake_gate held(handle_of(of.out));
        static_cast<void>(of.enqueue());
        step(of.in, of.y, of.chunk[of.chunk.size() - 2]);
    }
    cuda().synchronize();
    device_flag later;
    EXPECT_TRUE(gets_over(of.enqueue(&later)));
    EXPECT_FALSE(of.out.done());
    later.raise();
    cuda().synchronize();
}

TEST(CudaStream, O9WorkBehindTheCpuIsHeldAndTheCallerIsNot) {
    const stream host(cpu());
    const stream s(cuda());
    array x = make(host, 2);
    array y = make(s, 0);
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
TEST(CudaStream, O7AnOperationIsNotOverWithTheOneBeforeIt) {
    WEIR_NEEDS_FAKE();
    const stream a(cuda());
    const stream b(cuda());
    const stream c(cuda());
    array x = make(a, 1);
    array late = make(a, 5);
    array y = make(b, 0);
    array z = make(c, 0);
    cuda().synchronize();
    device_flag later;
    fake_gate held(handle_of(a));
    const completion first = step_in_place(a, x);
    const completion after_first = step(b, y, x);
    // Right behind it, and not complete until the host raises the flag.
    const completion last = access(
        a,
        [&](native_stream on, auto) {
            auto* const raw = static_cast<gpu::stream_handle>(on.handle);
            later.hold(raw);
            const gpu::context& in = cuda_context();
            in.expect(
                in.api().fill8_async(reinterpret_cast<gpu::device_pointer>(late.device_data()), 0, late.nbytes(), raw),
                "cuMemsetD8Async");
        },
        out<double>(late));
    const completion after_last = step(c, z, late);
    held.open();
    first.synchronize();
    after_first.synchronize();
    // The event of `first` is complete by now; a stream that took it for the event of `last` would go ahead.
    fake_cuda::settle(handle_of(c));
    EXPECT_FALSE(last.done());
    EXPECT_FALSE(after_last.done());
    later.raise();
    a.synchronize();
    EXPECT_THAT(values_of<double>(y), Each(111));
    EXPECT_THAT(values_of<double>(z), Each(1));
}

TEST(CudaStream, O9WhatAHostTaskWaitsForIsNotLeftToTheDriver) {
    WEIR_NEEDS_FAKE();
    const stream a(cuda());
    const stream b(cuda());
    array x = make(a, 1);
    const memory::use scope(memory::pinned());  // the driver copies to it in the stream
    array mirror = make(stream(cpu()), 0);
    mirror.device().synchronize();
    cuda().synchronize();
    std::vector<double> seen;
    {
        const fake_gate held(handle_of(a));
        step_in_place(a, x);
        copy(a, mirror, x);
        fake_cuda::forget_calls();
        host_task(
            b, [&](std::span<const double> values) { seen.assign(values.begin(), values.end()); }, in<double>(mirror));
        EXPECT_EQ(fake_cuda::calls("cuStreamWaitEvent"), 0U)
            << "which holds back the stream, but no thread of the host";
    }
    b.synchronize();
    EXPECT_THAT(seen, Each(11));
    EXPECT_EQ(seen.size(), std::size_t{elements});
}

}  // namespace
}  // namespace weir::test
