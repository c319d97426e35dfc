// Reductions of a program as kernels of a CUDA device: the results of the CPU. With WEIR_CUDA_DRIVER and WEIR_NVRTC_LIBRARY set to a
// GPU's the same program runs there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/array_values.hpp"
#include "support/fake_cuda.hpp"
#include "support/messages.hpp"
#include "weir/testing.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::differences;
using test::fake_cuda;
using test::message_of;
using test::values_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ReductionKernelOnCuda : public ::testing::Test {
protected:
    [[nodiscard]] std::vector<operand> there(const std::vector<operand>& inputs) const {
        std::vector<operand> all;
        for (const operand& one : inputs) {
            all.push_back(one.is_array() ? operand(to(device_, one.of_array(), cuda())) : one);
        }
        return all;
    }

    /// All outputs of a reduction whose values are exact are the same on both devices.
    void expect_same(const reduction_kernel& kernel, const std::vector<operand>& inputs, const along& axes) const {
        const std::vector<array> wanted = kernel.compute(host_, inputs, axes);
        const std::vector<array> seen = kernel.compute(device_, there(inputs), axes);
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
    const reduction_kernel total_{"T x", "T y", {.map = "x", .identity = "0"}};
};

TEST_F(ReductionKernelOnCuda, K3AxesAndStrides) {
    const array grid = reshape(host_, arange(0, 120, 1, dtype::int64, host_), {2, 3, 4, 5});
    for (const along& axes : {along(), along(0), along(3), along({1, 2}), along({0, 3}), along({0, 2}),
                              along({0, 1, 3}), along(std::vector<std::int64_t>{})}) {
        expect_same(total_, {grid}, axes);
    }
    along kept({0, 2});
    kept.keep = true;
    expect_same(total_, {grid}, kept);
    expect_same(total_, {grid.transpose({3, 1, 0, 2})}, {0, 2});
    expect_same(total_, {grid[{ellipsis, slice{{}, {}, -2}}]}, 3);
}

TEST_F(ReductionKernelOnCuda, SeveralOperands) {
    const reduction_kernel both("T x, float32 w, T scale", "T sum, bool large",
                                {.map = "scale * x * T(w)", .post = "sum = a; large = a > 1000", .identity = "0"});
    const array grid = reshape(host_, arange(0, 24, 1, dtype::int32, host_), {2, 3, 4});
    expect_same(both, {grid, astype(host_, arange(0, 4, 1, dtype::int64, host_), dtype::float32), 3}, {0, 2});
    expect_same(both, {grid, 2.0F, grid}, 1);
    expect_same(both, {4, 2.0F, 3}, {});
    const array row = reshape(host_, arange(0, 3, 1, dtype::int32, host_), {3, 1});
    expect_same(both, {row, full({4}, 2, dtype::float32, host_), 1}, 0);
}

TEST_F(ReductionKernelOnCuda, LargeReductionsTakeSeveralLaunches) {
    const array many = arange(0, 300'001, 1, dtype::int64, host_);
    expect_same(total_, {many}, {});
    expect_same(total_, {reshape(host_, many[{slice{0, 300'000}}], {3, 100'000})}, 1);
    expect_same(total_, {reshape(host_, many[{slice{0, 300'000}}], {100'000, 3})}, 0);
    const reduction_kernel largest("T x", "T y", {.map = "x % 1000", .reduce = "max(a, b)"});
    expect_same(largest, {many}, {});
}

TEST_F(ReductionKernelOnCuda, IndicesAndFieldsAreThoseOfTheCpu) {
    const reduction_kernel largest("T x", "T most, int64 where",
                                   {.map = "{x * 7919 % 299993, i}",
                                    .reduce = "a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b",
                                    .post = "most = a.value; where = a.index * (n + 1)",
                                    .identity = "{-1, -1}",
                                    .type = "T value, int64 index"});
    const reduction_kernel mixed("T x", "float64 y",
                                 {.map = "{x > 3, x, i}",
                                  .reduce = "{a.any || b.any, a.sum + b.sum, a.last > b.last ? a.last : b.last}",
                                  .post = "y = a.sum + a.last + a.any",
                                  .type = "bool any, float64 sum, int16 last"});
    const array grid = reshape(host_, arange(0, 120, 1, dtype::int64, host_), {2, 3, 4, 5});
    const array many = arange(0, 300'000, 1, dtype::int64, host_);
    for (const along& axes : {along(), along(0), along({1, 2}), along({0, 3})}) {
        expect_same(largest, {grid}, axes);
    }
    expect_same(largest, {grid.transpose({3, 1, 0, 2})}, {0, 2});
    expect_same(largest, {grid[{ellipsis, slice{{}, {}, -2}}]}, 3);
    expect_same(largest, {many}, {});
    expect_same(largest, {reshape(host_, many, {3, 100'000})}, 1);
    expect_same(largest, {reshape(host_, many, {100'000, 3})}, 0);
    expect_same(largest, {zeros({3, 0}, dtype::int64, host_)}, 1);
    expect_same(mixed, {grid}, {1, 3});
    expect_same(mixed, {many[{slice{0, 30'000}}]}, {});
}

TEST_F(ReductionKernelOnCuda, ValuesMayHaveTwelveFieldsOfAnyType) {
    std::string type;
    std::string map;
    std::string reduce;
    for (int k = 0; k < 12; ++k) {
        const std::string name = "f" + std::to_string(k);
        const char* const comma = k > 0 ? ", " : "";
        type += comma + ("complex128 " + name);
        map += comma + ("x + " + std::to_string(k));
        reduce += comma + ("a." + name + " + b." + name);
    }
    const reduction_kernel wide(
        "int64 x", "complex128 y",
        {.map = "{" + map + "}", .reduce = "{" + reduce + "}", .post = "y = a.f0 + a.f11", .type = type});
    expect_same(wide, {arange(0, 20'000, 1, dtype::int64, host_)}, {});
}

TEST_F(ReductionKernelOnCuda, NoElements) {
    const reduction_kernel product("T x", "T y", {.map = "x", .reduce = "a * b", .post = "y = a + 1", .identity = "1"});
    expect_same(product, {zeros({3, 0}, dtype::int64, host_)}, 1);
    expect_same(product, {zeros({0, 3}, dtype::int64, host_)}, 1);
    expect_same(product, {zeros({0}, dtype::int64, host_)}, {});
}

TEST_F(ReductionKernelOnCuda, ShortFloatsAndBooleans) {
    expect_same({"float16 x", "float16 y", {.map = "x"}}, {full({512}, 0.5, dtype::float16, host_)}, {});
    expect_same({"bool x", "bool y", {.map = "x", .reduce = "a || b", .identity = "false"}},
                {full({4, 5}, true, dtype::bool_, host_)}, 0);
}

TEST_F(ReductionKernelOnCuda, SumsAreAccurateAndTheSameBitsInEveryRun) {
    const array x = to(device_, random({100'000}, 3, dtype::float32, host_), cuda());
    const double exact =
        values_of<double>(to(device_, reduce(device_, reduction::sum, astype(device_, x, dtype::float64)), cpu()))[0];
    const float first = values_of<float>(to(device_, total_(device_, {x}), cpu()))[0];
    EXPECT_NEAR(static_cast<double>(first), exact, exact * (32 + 24) * std::ldexp(1.0, -24));
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(values_of<float>(to(device_, total_(device_, {x}), cpu()))[0], first);
    }
}

TEST_F(ReductionKernelOnCuda, OutputsMayBeInputs) {
    array x = to(device_, arange(0, 4, 1, dtype::int64, host_), cuda());
    array first = x[{0}];
    total_.launch(device_, {x}, {&first});
    EXPECT_EQ(values_of<std::int64_t>(to(device_, x, cpu())), (std::vector<std::int64_t>{6, 1, 2, 3}));
}

TEST_F(ReductionKernelOnCuda, O1WaitsOnTheDevice) {
    array x = full({8}, 1, dtype::int64, device_);
    static_cast<void>(total_(device_, {x}));
    device_.synchronize();
    const stream other(cuda());
    std::optional<array> y;
    {
        testing::gate held;
        held.hold(device_);
        fill(device_, x, 5);
        y = total_(other, {x});
        EXPECT_FALSE(y->ready());
    }
    EXPECT_EQ(values_of<std::int64_t>(to(other, *y, cpu())), std::vector<std::int64_t>{40});
}

TEST_F(ReductionKernelOnCuda, K6IsPreparedWithAllItsLaunches) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "only the fake driver counts what is loaded";
    }
    const array x = full({100'000}, 1, dtype::int32, device_);
    const reduction_kernel fresh("T x", "T y", {.map = "x + 7"});
    fresh.prepare(device_, {x});
    fake_cuda::forget_calls();
    const array y = fresh(device_, {x});
    EXPECT_EQ(fake_cuda::calls("cuModuleLoadDataEx"), 0U);
    EXPECT_EQ(values_of<std::int32_t>(to(device_, y, cpu())), std::vector<std::int32_t>{800'000});
    static_cast<void>(fresh(device_, {astype(device_, x, dtype::int64)}));
    EXPECT_GT(fake_cuda::calls("cuModuleLoadDataEx"), 0U) << "another type: the negative control";
}

TEST_F(ReductionKernelOnCuda, TextsThatDoNotCompileAreNamed) {
    const array x = full({4}, 1, dtype::float64, device_);
    const reduction_kernel wrong("T x", "T y", {.map = "x + unknown", .name = "k"});
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(wrong(device_, {x})); }),
                AllOf(HasSubstr("the map of the reduction k(T x -> T y) does not compile"), HasSubstr("NVRTC says")));
}

}  // namespace
}  // namespace weir
