// Sums, extremes and means against the same taken one element at a time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "array/visit.hpp"
#include "support/arrays.hpp"
#include "support/messages.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::make_array;
using test::message_of;
using test::values_of;
using ::testing::ElementsAre;

TEST(Reduction, AlongAxes) {
    const stream s;
    array x = arange(24, 48).reshape({2, 3, 4});
    EXPECT_EQ(values_of<std::int64_t>(sum(s, x))[0], (24 + 47) * 12);
    EXPECT_EQ(sum(s, x).dimensions(), 0U);
    EXPECT_THAT(values_of<std::int64_t>(sum(s, x, {0, 2})), ElementsAre(252, 284, 316));
    EXPECT_THAT(values_of<std::int64_t>(sum(s, x, -1)), ElementsAre(102, 118, 134, 150, 166, 182));
    EXPECT_THAT(values_of<std::int64_t>(max(s, x.t(), 0)), ElementsAre(27, 39, 31, 43, 35, 47));
    along kept = 1;
    kept.keep = true;
    EXPECT_EQ(min(s, x, kept).shape(), shape({2, 1, 4}));
    EXPECT_THAT(values_of<double>(mean(s, x, {1, 2})), ElementsAre(29.5, 41.5));
    EXPECT_THAT(values_of<std::int64_t>(sum(s, x[{1, 0}], along(std::initializer_list<std::int64_t>{}))),
                ElementsAre(36, 37, 38, 39))
        << "no axis: each element by itself";
    EXPECT_THROW((void)sum(s, x, 3), argument_error);
    EXPECT_EQ(message_of<argument_error>([&] {
                  (void)sum(s, x, {0, -3});
              }),
              "axis -3 of an array of the shape (2, 3, 4) is named twice: name each axis once");
}

TEST(Reduction, ResultTypesAreNumPys) {
    const stream s;
    for (const dtype type : arithmetic_dtypes()) {
        array x = ones({3, 5}, type, s);
        const bool floating = kind_of(type) >= dtype_kind::real;
        const dtype summed = floating                                        ? type
                             : kind_of(type) == dtype_kind::unsigned_integer ? dtype::uint64
                                                                             : dtype::int64;
        EXPECT_EQ(sum(s, x).dtype(), summed);
        EXPECT_EQ(mean(s, x).dtype(), floating ? type : dtype::float64);
        EXPECT_EQ(max(s, x).dtype(), type);
        array as_real = astype(s, sum(s, x, 0), dtype::float64);
        EXPECT_THAT(values_of<double>(as_real), ElementsAre(3, 3, 3, 3, 3)) << name_of(type);
        EXPECT_EQ(values_of<double>(astype(s, mean(s, x), dtype::float64))[0], 1.0) << name_of(type);
        EXPECT_EQ(values_of<double>(astype(s, min(s, x), dtype::float64))[0], 1.0) << name_of(type);
    }
}

TEST(Reduction, OfNoElements) {
    const stream s;
    array none = zeros({0, 3}, dtype::float32, s);
    EXPECT_THAT(values_of<float>(sum(s, none, 0)), ElementsAre(0, 0, 0));
    EXPECT_TRUE(std::isnan(values_of<float>(mean(s, none))[0]));
    EXPECT_EQ(max(s, none, 1).size(), 0);
    EXPECT_EQ(message_of<argument_error>([&] { (void)min(s, none, 0); }),
              "min of no elements, of the shape (0, 3): there is none; reduce axes that are not empty");
}

TEST(Reduction, ExtremesWithNaNAndComplexNumbers) {
    const stream s;
    const double nan = std::nan("");
    EXPECT_TRUE(std::isnan(values_of<double>(max(s, make_array<double>(s, 3, {1, nan, 2})))[0]));
    EXPECT_TRUE(std::isnan(values_of<double>(min(s, make_array<double>(s, 3, {nan, 1, 2})))[0]));
    using c = std::complex<float>;
    array x = make_array<c>(s, 3, {{1, 5}, {1, 7}, {0, 9}});
    EXPECT_EQ(values_of<c>(max(s, x))[0], c(1, 7));
    EXPECT_EQ(values_of<c>(min(s, x))[0], c(0, 9));
    EXPECT_EQ(values_of<bool>(min(s, zeros(20, dtype::bool_, s)))[0], false);
    EXPECT_EQ(values_of<std::int8_t>(min(s, full(9, -128, dtype::int8, s)))[0], -128);
}

TEST(Reduction, SumsAreAccurate) {
    const stream s;
    const std::int64_t count = 1 << 20;
    array single = full(count, 0.1, dtype::float32, s);
    const double each = static_cast<double>(0.1F);
    EXPECT_EQ(static_cast<double>(values_of<float>(sum(s, single))[0]),
              static_cast<double>(static_cast<float>(each * static_cast<double>(count))))
        << "one after the other in float32 would be off by percents";
    array twice = random({count / 64, 64}, 3, dtype::float64, s);
    const std::vector<double> values = values_of<double>(twice);
    long double exact = 0;
    for (const double one : values) {
        exact += static_cast<long double>(one);
    }
    const auto wanted = static_cast<double>(exact);
    EXPECT_NEAR(values_of<double>(sum(s, twice))[0], wanted, 4 * std::numeric_limits<double>::epsilon() * wanted);
    EXPECT_NEAR(values_of<double>(sum(s, twice.t()))[0], wanted, 4 * std::numeric_limits<double>::epsilon() * wanted);
    long double column = 0;
    for (std::size_t i = 5; i < values.size(); i += 64) {
        column += static_cast<long double>(values[i]);
    }
    const auto expected = static_cast<double>(column);
    EXPECT_NEAR(values_of<double>(sum(s, twice, 0))[5], expected,
                4 * std::numeric_limits<double>::epsilon() * expected);
    array half = full(5000, 1, dtype::float16, s);
    EXPECT_EQ(static_cast<float>(values_of<float16>(sum(s, half))[0]), 5000.0F) << "2048 + 1 is 2048 in float16";
}

/// Combines values in pairs of equal weight, like the carries of a binary counter.
double in_pairs(const std::vector<double>& values) {
    std::vector<std::pair<std::size_t, double>> levels;  // weight and value
    for (const double one : values) {
        levels.emplace_back(1, one);
        while (levels.size() > 1 && levels[levels.size() - 2].first == levels.back().first) {
            const auto [weight, later] = levels.back();
            levels.pop_back();
            levels.back() = {2 * weight, levels.back().second + later};
        }
    }
    double sum = levels.back().second;
    for (std::size_t i = levels.size() - 1; i > 0; --i) {
        sum = levels[i - 1].second + sum;
    }
    return sum;
}

/// The sum in the order that docs/reductions.md says.
double in_documented_order(const std::vector<double>& values) {
    constexpr std::size_t lanes = 16;
    std::vector<double> groups;
    std::vector<double> chunks;
    for (std::size_t first = 0; first < values.size(); first += 1024) {
        const std::size_t count = std::min<std::size_t>(1024, values.size() - first);
        std::vector<double> lane(values.begin() + static_cast<std::ptrdiff_t>(first),
                                 values.begin() + static_cast<std::ptrdiff_t>(first + std::min(count, lanes)));
        for (std::size_t j = lanes; j < count; ++j) {
            lane[j % lanes] += values[first + j];
        }
        for (std::size_t half = lanes / 2; half > 0; half /= 2) {
            for (std::size_t k = 0; k < half && k + half < lane.size(); ++k) {
                lane[k] += lane[k + half];
            }
            lane.resize(std::min(lane.size(), half));
        }
        chunks.push_back(lane[0]);
        if (chunks.size() == 64 || first + 1024 >= values.size()) {
            groups.push_back(in_pairs(chunks));
            chunks.clear();
        }
    }
    return in_pairs(groups);
}

TEST(Reduction, SumsAreTheSameBitsForAnyLayoutAndNumberOfThreads) {
    const stream s;
    const std::int64_t rows = 1100;
    const std::int64_t columns = 300;  // enough elements that threads share them
    const array x = random({rows, columns}, 5, dtype::float64, s);
    const std::vector<double> values = values_of<double>(x);
    const auto element = [&](std::int64_t row, std::int64_t column) {
        return values[static_cast<std::size_t>(row * columns + column)];
    };
    std::vector<double> of_columns;
    for (std::int64_t column = 0; column < columns; ++column) {
        std::vector<double> all;
        for (std::int64_t row = 0; row < rows; ++row) {
            all.push_back(element(row, column));
        }
        of_columns.push_back(in_documented_order(all));
    }
    std::vector<double> of_rows;
    for (std::int64_t row = 0; row < rows; ++row) {
        const auto first = values.begin() + row * columns;
        of_rows.push_back(in_documented_order({first, first + columns}));
    }
    EXPECT_NE(std::accumulate(values.begin(), values.end(), 0.0), in_documented_order(values)) << "the control";

    const array turned = copy(s, x.t()).t();
    ASSERT_FALSE(turned.is_contiguous());
    array wide = zeros({rows, 2 * columns}, dtype::float64, s);
    array apart = wide[{slice{}, slice{{}, {}, 2}}];
    copy(s, apart, x);
    array upside_down = empty({rows, columns}, dtype::float64, s)[{slice{{}, {}, -1}, slice{{}, {}, -1}}];
    copy(s, upside_down, x);
    for (const array& layout : {x, turned, apart, upside_down}) {
        EXPECT_EQ(values_of<double>(sum(s, layout, 0)), of_columns);
        EXPECT_EQ(values_of<double>(sum(s, layout, 1)), of_rows);
    }
    EXPECT_EQ(values_of<double>(sum(s, x))[0], in_documented_order(values));
    EXPECT_EQ(values_of<double>(sum(s, apart))[0], in_documented_order(values));
    EXPECT_EQ(values_of<double>(sum(s, x[{slice{}, slice{7, 8}}], 0))[0], of_columns[7]) << "alone, and beside others";

    const stream one(cpu_inline());
    const array there = to(one, x, one.device());
    EXPECT_EQ(values_of<double>(sum(one, there, 0)), of_columns);
    EXPECT_EQ(values_of<double>(sum(one, there, 1)), of_rows);
    EXPECT_EQ(values_of<double>(sum(one, there))[0], in_documented_order(values));
}

std::vector<float> rounded(const std::vector<std::int64_t>& sums) {
    std::vector<float> made;
    for (const std::int64_t one : sums) {
        made.push_back(static_cast<float>(one));
    }
    return made;
}

TEST(Reduction, RandomShapesStridesAndAxes) {
    std::mt19937 choose(11);
    const auto upto = [&](int most) { return std::uniform_int_distribution<std::int64_t>(0, most)(choose); };
    const stream s;
    for (int i = 0; i < 300; ++i) {
        const std::vector<std::int64_t> extents = {1 + upto(40), 1 + upto(6), 1 + upto(20)};
        array all = arange(0, extents[0] * extents[1] * extents[2]).reshape(shape(std::span(extents)));
        const std::vector<std::vector<std::int64_t>> orders = {{0, 1, 2}, {2, 0, 1}, {1, 2, 0}, {2, 1, 0}};
        array x = all.transpose(orders[static_cast<std::size_t>(upto(3))])[{slice{{}, {}, upto(1) == 0 ? -1 : 2},
                                                                            slice{}, slice{{}, {}, 1 + upto(1)}}];
        const std::vector<std::int64_t> values = values_of<std::int64_t>(x);
        const auto reduced = static_cast<std::uint64_t>(upto(7));
        std::vector<std::int64_t> axes;
        std::int64_t results = 1;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            if ((reduced >> axis & 1U) != 0) {
                axes.push_back(static_cast<std::int64_t>(axis));
            } else {
                results *= x.shape()[axis];
            }
        }
        std::vector<std::int64_t> sums(static_cast<std::size_t>(results), 0);
        std::vector<std::int64_t> largest(static_cast<std::size_t>(results), INT64_MIN);
        std::size_t next = 0;
        for (std::int64_t a = 0; a < x.shape()[0]; ++a) {
            for (std::int64_t b = 0; b < x.shape()[1]; ++b) {
                for (std::int64_t c = 0; c < x.shape()[2]; ++c) {
                    std::int64_t at = 0;
                    const std::int64_t index[] = {a, b, c};
                    for (std::size_t axis = 0; axis < 3; ++axis) {
                        at = (reduced >> axis & 1U) != 0 ? at : at * x.shape()[axis] + index[axis];
                    }
                    sums[static_cast<std::size_t>(at)] += values[next];
                    largest[static_cast<std::size_t>(at)] =
                        std::max(largest[static_cast<std::size_t>(at)], values[next]);
                    ++next;
                }
            }
        }
        ASSERT_EQ(values_of<std::int64_t>(sum(s, x, along(axes))), sums) << i;
        ASSERT_EQ(values_of<std::int64_t>(max(s, x, along(axes))), largest) << i;
        ASSERT_EQ(values_of<float>(sum(s, astype(s, x, dtype::float32), along(axes))), rounded(sums)) << i;
    }
}

}  // namespace
}  // namespace weir
