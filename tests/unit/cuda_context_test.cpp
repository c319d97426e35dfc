// Which context is current where work enters a stream: launches, records and waits find theirs by their stream.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "unit/cuda_support.hpp"

namespace weir::test {
namespace {

using ::testing::Each;

/// Two streams of cuda:0 in turn change two arrays.
struct turns {
    stream a{cuda(0)};
    stream b{cuda(0)};
    array x = make(a, 1);
    // On the same stream: initcheck of compute-sanitizer 2025.3 reports elements as not written if a kernel writes them to memory that was
    // just mapped, while memory beside it is set on another stream.
    array y = make(a, 0);

    turns() { cuda(0).synchronize(); }
    /// All of it is enqueued before any of it begins, so that each event stays in its place until the end.
    void take_held(int times) {
        device_flag open;
        open.hold(static_cast<gpu::stream_handle>(handle_of(a)));
        take(times);
        open.raise();
        cuda(0).synchronize();
    }
    void take(int times) {
        for (int turn = 0; turn < times; ++turn) {
            step(a, y, x);
            step(b, x, y);
        }
    }
};

/// The context that is current on a thread that had `before`, after it has enqueued some work.
gpu::context_handle current_after_turns(gpu::context_handle before) {
    turns taken;
    // Makes the kernel, and the streams' events, which needs the context: first more places for them than are needed below, then an
    // event for each place, so that these are used again, and no more are made.
    taken.take_held(8);
    for (int i = 0; i < 16; ++i) {
        taken.take(4);
        cuda(0).synchronize();
    }
    fill(taken.a, taken.x, 1.0);
    fill(taken.b, taken.y, 0.0);
    cuda(0).synchronize();
    gpu::context_handle left = nullptr;
    std::thread([&] {
        const gpu::driver_api& api = cuda_context().api();
        EXPECT_EQ(api.context_set_current(before), gpu::success);
        taken.take(3);
        EXPECT_EQ(api.context_get_current(&left), gpu::success);
    }).join();
    cuda(0).synchronize();
    EXPECT_THAT(values_of<double>(taken.x), Each(1111111));
    return left;
}

gpu::context_handle context_of_the_other_device() {
    return gpu::context_of(cuda(1).state(detail::key).driver()).handle();
}

TEST(CudaContext, LaunchesAndWaitsNeedNoneAndLeaveNone) { EXPECT_EQ(current_after_turns(nullptr), nullptr); }
TEST(CudaContext, LaunchesAndWaitsGoWhereTheirStreamIsWhateverIsCurrent) {
    WEIR_NEEDS_FAKE();
    const gpu::context_handle other = context_of_the_other_device();
    EXPECT_EQ(current_after_turns(other), other);
}
TEST(CudaContext, ADriverThatAsksForTheContextIsAskedAgainInIt) {
    WEIR_NEEDS_FAKE();
    const fake_cuda::ignoring_handles strictly;
    const gpu::context_handle other = context_of_the_other_device();
    EXPECT_EQ(current_after_turns(other), other);
    EXPECT_EQ(current_after_turns(nullptr), cuda_context().handle()) << "as a thread gets it from the runtime";
}

}  // namespace
}  // namespace weir::test
