// The fake CUDA driver does what the driver's manual says where tests of the CUDA backend build on it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "unit/fake_cuda_support.hpp"

namespace weir::test {
namespace {

using testing::Each;
using testing::HasSubstr;

TEST_F(fake_cuda_test, a_kernel_runs_over_its_grid_with_the_arguments_it_was_launched_with) {
    const auto made = fake_nvrtc::compile(R"(
extern "C" __global__ void __launch_bounds__(256) add(int* to, const int* from, int by, unsigned count) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        to[i] = from[i] + by;
    }
})");
    ASSERT_EQ(made.error, 0) << made.log;
    const module_handle module = load(made.image);
    const function_handle add = kernel(module, "add");
    const stream_handle stream = make_stream();
    std::vector<int> values(1000);
    std::iota(values.begin(), values.end(), 0);
    const device_pointer memory = allocate(values.size() * sizeof(int));
    ASSERT_EQ(api.copy_to_device_async(memory, values.data(), values.size() * sizeof(int), stream), success);
    {
        const fake_gate gate(stream);
        int by = 7;
        ASSERT_EQ(launch(add, 4, 256, stream, memory, memory, by, 1000U), success);
        by = 9;  // a copy was taken
    }
    ASSERT_EQ(api.copy_to_host_async(values.data(), memory, values.size() * sizeof(int), stream), success);
    for (int i = 0; i < 1000; ++i) {
        ASSERT_EQ(values[static_cast<std::size_t>(i)], i + 7);
    }
    EXPECT_EQ(api.stream_destroy(stream), success);
    EXPECT_EQ(api.memory_free(memory), success);
    EXPECT_EQ(api.module_unload(module), success);
}

}  // namespace
}  // namespace weir::test
