// Which context is current where work enters a stream: launches, records and waits name theirs by their stream.
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
    // On the same stream: initcheck of compute-sanitizer 2025.3 takes what a kernel writes to memory that was mapped just now for
    // not written, where memory beside it is set on another stream meanwhile.
    array y = make(a, 0);

    turns() { cuda(0).synchronize(); }
    void take(int times) const {
        for (int turn = 0; turn < times; ++turn) {
            step(a, y, x);
            step(b, x, y);
        }
    }
};

/// Which context is current on a thread that had `before`, after it has enqueued some.
gpu::context_handle current_after_turns(gpu::context_handle before) {
    const turns taken;
    for (int i = 0; i < 8; ++i) {
        taken.take(2);          // makes the kernel, and the streams' events, which needs the context
        cuda(0).synchronize();  // so that these are used again, and no more are made
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

gpu::context_handle context_of_the_other_device() { return gpu::context_of(cuda(1).state().driver()).handle(); }

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
