// Element-wise kernels of a program as kernels of a CUDA device: the same results as on the CPU, bit for bit. With WEIR_CUDA_DRIVER and
// WEIR_NVRTC_LIBRARY set to a GPU's the same program runs there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "support/array_values.hpp"
#include "support/fake_cuda.hpp"
#include "support/messages.hpp"
#include "support/scratch_folder.hpp"
#include "weir/testing.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::differences;
using test::fake_cuda;
using test::interesting;
using test::message_of;
using test::values_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ElementwiseKernelOnCuda : public ::testing::Test {
protected:
    /// All outputs of a kernel are the same on both devices.
    void expect_same(const elementwise_kernel& kernel, const std::vector<operand>& inputs) const {
        std::vector<operand> there;
        for (const operand& one : inputs) {
            there.push_back(one.is_array() ? operand(to(device_, one.of_array(), cuda())) : one);
        }
        const std::vector<array> wanted = kernel.compute(host_, inputs);
        const std::vector<array> seen = kernel.compute(device_, there);
        ASSERT_EQ(seen.size(), wanted.size());
        for (std::size_t k = 0; k < seen.size(); ++k) {
            ASSERT_TRUE(seen[k].device() == cuda());
            ASSERT_EQ(seen[k].dtype(), wanted[k].dtype());
            ASSERT_EQ(seen[k].shape(), wanted[k].shape());
            EXPECT_EQ(differences(to(device_, seen[k], cpu()), wanted[k]), 0U) << kernel.to_string();
        }
    }

    stream host_{cpu()};
    stream device_{cuda()};
};

TEST_F(ElementwiseKernelOnCuda, NumbersAreThoseOfTheCpu) {
    const array x = interesting(host_, dtype::float32, 1);
    const array y = interesting(host_, dtype::float32, 2);
    expect_same({"float x, float y, float a", "float z, bool less", "z = a * x + y; less = x < y"}, {x, y, 3.0F});
    const array h = interesting(host_, dtype::float16, 1);
    expect_same({"T x", "T y", "y = x * x - 1"}, {h});
    const array i = interesting(host_, dtype::int32, 1);
    expect_same({"T x", "int64 y, uint8 z", "y = i * 2 + x; z = x & 255"}, {i});
}

TEST_F(ElementwiseKernelOnCuda, StridesAndBroadcasting) {
    const array grid = reshape(host_, arange(0, 24, 1, dtype::int64, host_), {2, 3, 4});
    const array row = arange(0, 4, 1, dtype::int64, host_);
    expect_same({"T x, T y", "T z", "z = x * 100 + y * i + n"},
                {grid.transpose({2, 1, 0}), reshape(host_, row[{slice{0, 2}}], {1, 2})});
    expect_same({"T x, T y", "T z", "z = x * 100 + y"}, {grid[{ellipsis, slice{{}, {}, -2}}], row[{slice{0, 2}}]});
}

TEST_F(ElementwiseKernelOnCuda, RawInputs) {
    const array table = interesting(host_, dtype::float32, 3);
    const array at = reshape(host_, arange(0, 24, 1, dtype::int32, host_), {4, 6});
    const elementwise_kernel gather("raw float table, raw T other, int32 at", "float y, T z, int64 size",
                                    "y = table[table.size() - 1 - at]; z = other[at % 3] * i; size = other.size()");
    expect_same(gather, {table, arange(0, 6, 1, dtype::int64, host_)[{slice{{}, {}, 2}}], at.transpose({1, 0})});
    const array h = interesting(host_, dtype::float16, 1);
    expect_same({"raw T x, T y", "T z", "z = x[n - 1 - i] + y"}, {h, h});
}

TEST_F(ElementwiseKernelOnCuda, InPlaceAndOverlapping) {
    const elementwise_kernel add("T x", "inout T y", "y += x");
    array line = to(device_, arange(0, 1000, 1, dtype::int64, host_), cuda());
    array later = line[{slice{1, {}}}];
    add.launch(device_, {line[{slice{0, 999}}]}, {&later});
    const auto seen = values_of<std::int64_t>(to(device_, line, cpu()));
    for (std::int64_t i = 1; i < 1000; ++i) {
        ASSERT_EQ(seen[static_cast<std::size_t>(i)], 2 * i - 1);
    }
}

TEST_F(ElementwiseKernelOnCuda, O1WaitsOnTheDevice) {
    const elementwise_kernel twice("T x", "T y", "y = 2 * x");
    array x = full(4, 1.0, dtype::float64, device_);
    static_cast<void>(twice(device_, x));
    device_.synchronize();
    const stream other(cuda());
    std::optional<array> y;
    {
        testing::gate held;
        held.hold(device_);
        fill(device_, x, 5.0);
        y = twice(other, x);
        EXPECT_FALSE(y->ready());
    }
    EXPECT_EQ(values_of<double>(to(other, *y, cpu())), (std::vector<double>{10, 10, 10, 10}));
}

TEST_F(ElementwiseKernelOnCuda, ErrorsHaveLinesOfTheBody) {
    const array x = full(4, 1.0, dtype::float64, device_);
    const elementwise_kernel wrong("T x", "T y", "\ny = x + unknown");
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(wrong(device_, x)); }),
                AllOf(HasSubstr("line 2, \"y = x + unknown\""), HasSubstr("NVRTC says")));
    const elementwise_kernel reads("T x", "T y", "y = x;\ny = y + 1");
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(reads(device_, x)); }),
                HasSubstr("reads the output y in line 2"));
}

TEST_F(ElementwiseKernelOnCuda, IsCompiledOnceForAllKernelsWithTheSameText) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "only the fake NVRTC counts compilations";
    }
    // A cache of its own: another run of this program may have left its kernels in the usual one.
    const test::scratch_folder cache;
    const char* const set = std::getenv("WEIR_CACHE_DIR");
    const std::string usual = set != nullptr ? set : "";
    ::setenv("WEIR_CACHE_DIR", cache.path().c_str(), 1);
    const array x = full(4, 1.0, dtype::float64, device_);
    const array other = astype(device_, x, dtype::float32);
    const elementwise_kernel first("T x", "T y", "y = x + 0.125", "first");
    const auto before = fake_cuda::compilations();
    static_cast<void>(first(device_, x));
    const auto compiled = fake_cuda::compilations();
    EXPECT_EQ(compiled, before + 1);
    static_cast<void>(first(device_, x));
    const elementwise_kernel second("T x", "T y", "y = x + 0.125", "second");
    static_cast<void>(second(device_, x));
    EXPECT_EQ(fake_cuda::compilations(), compiled);
    static_cast<void>(second(device_, other));
    EXPECT_EQ(fake_cuda::compilations(), compiled + 1) << "the kernel for another type";
    set != nullptr ? ::setenv("WEIR_CACHE_DIR", usual.c_str(), 1) : ::unsetenv("WEIR_CACHE_DIR");
}

}  // namespace
}  // namespace weir
