// A library call whose work is a native task. A program of its own: there host code stands for kernels, memory is the host's, and
// the driver's copies from host to host wait.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "library_call_support.hpp"
#include "runtime/streams/stream_state.hpp"
#include "support/arrays.hpp"
#include "support/fake_cuda.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

TEST(LibraryCallOnCuda, P3WhatALibraryMadeOutlivesItsNativeTaskUntilTheDeviceIsDone) {
    if (!test::fake_cuda::in_use()) {
        GTEST_SKIP() << "the test holds the streams of the fake driver";
    }
    const stream s(cuda());
    const std::array<array, 2> operands{full(2, 1.0, dtype::float64, s), full(3, 2.0, dtype::float64, s)};
    const array result = zeros(5, dtype::float64, s);
    test::joiner f(operands);
    f.plan(s);
    cuda().synchronize();
    const unsigned long long copies = test::fake_cuda::calls("cuMemcpyAsync");
    test::fake_gate held(s.state(detail::key).queue->handle());
    f.execute(s, result);
    f.free();
    ASSERT_EQ(test::fake_cuda::calls("cuMemcpyAsync"), copies + 3)
        << "the task has put its work into the driver's stream";
    EXPECT_FALSE(result.ready());
    EXPECT_FALSE(test::last_handle.expired());
    held.open();
    EXPECT_EQ(test::values_of<double>(result), (std::vector<double>{1, 1, 2, 2, 2}));
}

}  // namespace
}  // namespace weir
