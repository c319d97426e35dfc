// Reductions on a CUDA device beside the CPU's, and sums beside exact ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "support/array_values.hpp"
#include "support/fake_cuda.hpp"

namespace weir {
namespace {

using test::differences;
using test::fake_cuda;
using test::make_array;
using test::values_of;
using ::testing::ElementsAre;

class ReductionsOnCuda : public ::testing::Test {
protected:
    [[nodiscard]] array there(const array& x) const { return to(device_, x, cuda()); }
    [[nodiscard]] array here(const array& x) const { return to(device_, x, cpu()); }
    void expect_equal(const array& seen, const array& wanted, const std::string& what) const {
        ASSERT_EQ(seen.device(), cuda()) << what;
        ASSERT_EQ(seen.dtype(), wanted.dtype()) << what;
        ASSERT_EQ(seen.shape(), wanted.shape()) << what;
        EXPECT_EQ(differences(here(seen), wanted), 0U) << what;
    }

    stream host_{cpu()};
    stream device_{cuda()};
};

constexpr reduction all_reductions[] = {reduction::sum, reduction::min, reduction::max, reduction::mean};

/// Whole numbers of which every sum is exact, in any order.
array whole(const stream& on, const shape& extents, dtype type) {
    array numbers = random(extents, 3, dtype::float64, on) * (type == dtype::bool_ ? 1.5 : 100.0);
    return astype(on, astype(on, numbers, dtype::int8), type);
}

TEST_F(ReductionsOnCuda, OfEachTypeAlongAllAxes) {
    const std::vector<dtype> some = {dtype::bool_, dtype::uint8, dtype::float16, dtype::complex64};
    const use current(host_);
    for (const dtype type :
         fake_cuda::in_use() ? some : std::vector<dtype>(arithmetic_dtypes().begin(), arithmetic_dtypes().end())) {
        array x = whole(host_, {23, 17}, type);
        for (const reduction what : all_reductions) {
            expect_equal(reduce(device_, what, there(x)), reduce(host_, what, x),
                         std::to_string(static_cast<int>(what)) + " of " + std::string(name_of(type)));
        }
    }
}

TEST_F(ReductionsOnCuda, AlongAnyAxesOfAnyLayout) {
    const use current(host_);
    array x = whole(host_, {7, 40, 9}, dtype::int32);
    array y = there(x);
    along kept = {0, 2};
    kept.keep = true;
    const std::vector<along> axes = {along(),       along(0),      along(1), along(-1),
                                     along({0, 2}), along({1, 0}), kept,     along(std::vector<std::int64_t>())};
    for (const along& one : axes) {
        expect_equal(sum(device_, y, one), sum(host_, x, one), "as it lies");
        expect_equal(sum(device_, y.t(), one), sum(host_, x.t(), one), "transposed");
        expect_equal(max(device_, y[{slice{{}, {}, -1}, slice{1, {}, 3}}], one),
                     max(host_, x[{slice{{}, {}, -1}, slice{1, {}, 3}}], one), "every third, backwards");
    }
    expect_equal(sum(device_, y[0].broadcast_to({50, 40, 9}), 0), sum(host_, x[0].broadcast_to({50, 40, 9}), 0),
                 "the same again and again");
}

TEST_F(ReductionsOnCuda, OfManyElementsInSeveralSteps) {
    const use current(host_);
    array x = whole(host_, {270000}, dtype::int32);  // three steps where results are beside each other, else two
    array y = there(x);
    for (const shape& extents : {shape({270000}), shape({67500, 4}), shape({4, 67500}), shape({2, 67500, 2})}) {
        for (const along& one : {along(), along(0), along(-1)}) {
            expect_equal(sum(device_, y.reshape(extents), one), sum(host_, x.reshape(extents), one),
                         extents.to_string());
        }
    }
    expect_equal(min(device_, y.reshape({67500, 4}), 0), min(host_, x.reshape({67500, 4}), 0), "the least");
    expect_equal(mean(device_, y), mean(host_, x), "the mean");
}

TEST_F(ReductionsOnCuda, SumsAreWithinTheirBoundAndAlwaysTheSame) {
    constexpr std::int64_t count = 100000;
    array x = random(count, 8, dtype::float64, host_);
    const auto numbers = values_of<double>(x);
    long double exact = 0;
    for (const double one : numbers) {
        exact += static_cast<long double>(one);
    }
    array y = there(x);
    const double seen = values_of<double>(sum(device_, y))[0];
    const double bound = 24 * 3 * 0x1p-53 * static_cast<double>(exact);  // log256(100000) is below 3
    const auto error = static_cast<double>(static_cast<long double>(seen) - exact);
    EXPECT_LE(std::abs(error), bound);
    const double without_last = error - numbers.back();
    EXPECT_GT(std::abs(without_last), bound) << "control: a sum that lacks one of the numbers is not within it";
    for (int again = 0; again < 3; ++again) {
        const double same = values_of<double>(sum(stream(cuda()), y))[0];
        EXPECT_EQ(std::memcmp(&same, &seen, sizeof same), 0) << "the same bits, whenever it runs";
    }
    array rounded = astype(host_, x, dtype::float32);
    const float single = values_of<float>(sum(device_, there(rounded)))[0];
    EXPECT_FLOAT_EQ(single, values_of<float>(sum(host_, rounded))[0]) << "taken in float64 and rounded once";
}

TEST_F(ReductionsOnCuda, ExtremesWithNaN) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    array x = there(make_array<double>(host_, {2, 3}, {1, nan, 2, 5, 4, 3}));
    const auto least = values_of<double>(min(device_, x, 1));
    EXPECT_TRUE(std::isnan(least[0]));
    EXPECT_EQ(least[1], 3);
    const auto most = values_of<double>(max(device_, x, 0));
    EXPECT_EQ(most[0], 5);
    EXPECT_TRUE(std::isnan(most[1]));
    using c = std::complex<float>;
    EXPECT_THAT(values_of<c>(max(device_, there(make_array<c>(host_, 3, {{1, 5}, {1, 7}, {0, 9}})))),
                ElementsAre(c(1, 7)));
}

TEST_F(ReductionsOnCuda, OfNoElements) {
    array none = there(zeros({0, 3}, dtype::float32, host_));
    EXPECT_THAT(values_of<float>(sum(device_, none, 0)), ElementsAre(0, 0, 0));
    EXPECT_TRUE(std::isnan(values_of<float>(mean(device_, none))[0]));
    EXPECT_EQ(max(device_, none, 1).size(), 0);
    EXPECT_THROW((void)min(device_, none, 0), argument_error);
}

}  // namespace
}  // namespace weir
