// Scenarios E9 and E10 for products of matrices on every device: results by element type, shape, strides, factors and epilog.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/arrays.hpp"
#include "support/devices.hpp"
#include "support/matrices.hpp"
#include "weir/arithmetic.hpp"
#include "weir/launch.hpp"
#include "weir/linalg.hpp"

namespace weir {
namespace {

using test::dense_array;
using test::error_of;
using test::here;
using test::make_array;
using test::norm;
using test::precise;
using test::product_of;
using test::random_array;
using test::to_array;
using test::values_of;
using numbers = std::vector<double>;

/// Calls `check` with a value of each element type.
template <class Check>
void with_each_type(const Check& check) {
    check(float16{});
    check(bfloat16{});
    check(float{});
    check(double{});
    check(std::complex<float>{});
    check(std::complex<double>{});
}

struct shapes {
    shape a;
    shape b;
};

template <class T>
void expect_product(const stream& on, const dense_array& a, const dense_array& b, const array& x, const array& y) {
    const dense_array right = product_of(a, b);
    array got = matmul(on, x, y);
    EXPECT_EQ(got.shape(), right.extents);
    EXPECT_EQ(got.dtype(), dtype_of<T>);
    EXPECT_EQ(got.device(), here());
    EXPECT_LT(error_of<T>(got, right.values, a.extents[a.extents.dimensions() - 1], norm(a.values) * norm(b.values)),
              1.0L)
        << name_of(dtype_of<T>) << " " << a.extents.to_string() << " " << b.extents.to_string();
}

WEIR_CONFORMANCE(E10, ProductsOfEachTypeAndShape) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    with_each_type([&]<class T>(T) {
        for (const shapes& each : std::vector<shapes>{{{5, 7}, {7, 3}},
                                                      {{1, 1}, {1, 1}},
                                                      {{7}, {7}},
                                                      {{7}, {7, 3}},
                                                      {{5, 7}, {7}},
                                                      {{1, 7}, {7, 5}},
                                                      {{5, 7}, {7, 1}},
                                                      {{33, 65}, {65, 17}},
                                                      {{4, 5, 7}, {4, 7, 3}},
                                                      {{4, 5, 7}, {7, 3}},
                                                      {{4, 1, 7}, {7, 3}},
                                                      {{4, 5, 7}, {7}},
                                                      {{5, 7}, {4, 7, 3}},
                                                      {{7}, {4, 7, 3}},
                                                      {{2, 1, 5, 7}, {3, 7, 4}},
                                                      {{2, 3, 5, 7}, {2, 1, 7, 4}},
                                                      {{1, 3, 2, 2}, {2, 1, 2, 2}}}) {
            const dense_array a = random_array<T>(each.a, 1);
            const dense_array b = random_array<T>(each.b, 2);
            expect_product<T>(on, a, b, to_array<T>(on, a), to_array<T>(on, b));
        }
    });
}

/// All products whose matrices have one, two or three rows, columns and elements that meet, with and without batches.
WEIR_CONFORMANCE(E10, ProductsOfEachShapeWithSmallExtents) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    const std::vector<std::vector<std::int64_t>> batches{{}, {1}, {2}, {3, 2}, {3, 1}};
    const auto product = [&on](std::vector<std::int64_t> left, std::vector<std::int64_t> right) {
        const dense_array a = random_array<double>(shape(left), 1);
        const dense_array b = random_array<double>(shape(right), 2);
        expect_product<double>(on, a, b, to_array<double>(on, a), to_array<double>(on, b));
    };
    const auto longer = [](std::vector<std::int64_t> batch, std::initializer_list<std::int64_t> by) {
        batch.insert(batch.end(), by);
        return batch;
    };
    for (const std::int64_t depth : {1, 2}) {
        for (const auto& left : batches) {
            product(longer(left, {2, depth}), {depth});
            product({depth}, longer(left, {depth, 2}));
            for (const auto& right : batches) {
                for (const std::int64_t rows : {1, 2, 3}) {
                    for (const std::int64_t columns : {1, 2, 3}) {
                        product(longer(left, {rows, depth}), longer(right, {depth, columns}));
                    }
                }
            }
        }
    }
}

/// The same numbers, laid out anyhow.
std::vector<array> layouts_of(const stream& on, const array& x) {
    const std::int64_t rows = x.shape()[0];
    const std::int64_t columns = x.shape()[1];
    array turned = empty({columns, rows}, x.dtype(), on);
    copy(on, turned.t(), x);
    array wide = full({rows, columns + 3}, 9, x.dtype(), on);
    array part = wide[{slice{}, slice{2, columns + 2}}];
    copy(on, part, x);
    array tall = full({columns, rows + 2}, 9, x.dtype(), on);
    array turned_part = tall[{slice{}, slice{1, rows + 1}}].t();
    copy(on, turned_part, x);
    array apart = full({2 * rows, 2 * columns}, 9, x.dtype(), on);
    array every_other = apart[{slice{0, 2 * rows, 2}, slice{0, 2 * columns, 2}}];
    copy(on, every_other, x);
    array flipped = empty({rows, columns}, x.dtype(), on);
    array backwards = flipped[{slice{{}, {}, -1}, slice{{}, {}, -1}}];
    copy(on, backwards, x);
    return {x, turned.t(), part, turned_part, every_other, backwards};
}

WEIR_CONFORMANCE(E9, OperandsAndResultsOfAnyStrides) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    for (const shapes& each :
         std::vector<shapes>{{{5, 6}, {6, 4}}, {{1, 6}, {6, 4}}, {{5, 6}, {6, 1}}, {{5, 1}, {1, 4}}}) {
        const dense_array a = random_array<double>(each.a, 1);
        const dense_array b = random_array<double>(each.b, 2);
        const dense_array right = product_of(a, b);
        const auto is_right = [&](const array& got) {
            return error_of<double>(got, right.values, each.a[1], norm(a.values) * norm(b.values)) < 1.0L;
        };
        const std::vector<array> lefts = layouts_of(on, to_array<double>(on, a));
        const std::vector<array> rights = layouts_of(on, to_array<double>(on, b));
        for (std::size_t i = 0; i < lefts.size(); ++i) {
            for (std::size_t j = 0; j < rights.size(); ++j) {
                EXPECT_TRUE(is_right(matmul(on, lefts[i], rights[j]))) << i << " " << j;
                std::vector<array> outs = layouts_of(on, zeros(right.extents, dtype::float64, on));
                for (std::size_t l = 0; l < outs.size(); ++l) {
                    matmul(on, lefts[i], rights[j], outs[l]);
                    EXPECT_TRUE(is_right(copy(on, outs[l]))) << i << " " << j << " into " << l;
                }
            }
        }
    }
}

WEIR_CONFORMANCE(E9, WhatLiesBetweenTheElementsOfAResultStays) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    array out = full({4, 6}, -7.0, dtype::float64, on);
    matmul(on, ones({4, 2}, dtype::float64, on), ones({2, 3}, dtype::float64, on), out[{slice{}, slice{0, 6, 2}}]);
    EXPECT_EQ(values_of<double>(copy(on, out[{slice{}, slice{0, 6, 2}}])), numbers(12, 2.0));
    EXPECT_EQ(values_of<double>(copy(on, out[{slice{}, slice{1, 6, 2}}])), numbers(12, -7.0));
}

WEIR_CONFORMANCE(E9, BroadcastAndTransposedBatches) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    const dense_array a = random_array<float>({6, 2, 5, 4}, 1);
    const dense_array b = random_array<float>({6, 2, 4, 3}, 2);
    array x = empty({2, 6, 4, 5}, dtype::float32, on);
    copy(on, x.transpose({1, 0, 3, 2}), to_array<float>(on, a));
    array y = empty({4, 6, 2, 3}, dtype::float32, on);
    copy(on, y.transpose({1, 2, 0, 3}), to_array<float>(on, b));
    expect_product<float>(on, a, b, x.transpose({1, 0, 3, 2}), y.transpose({1, 2, 0, 3}));

    const dense_array one = random_array<float>({5, 4}, 3);
    const array many = to_array<float>(on, one).broadcast_to({6, 2, 5, 4});
    const dense_array repeated{many.shape(), test::broadcast_values(one, many.shape())};
    expect_product<float>(on, repeated, b, many, to_array<float>(on, b));

    const dense_array row = random_array<float>({1, 4}, 4);
    const array rows = to_array<float>(on, row).broadcast_to({5, 4});
    const dense_array all_rows{rows.shape(), test::broadcast_values(row, rows.shape())};
    expect_product<float>(on, all_rows, b, rows, to_array<float>(on, b));
}

/// Batches between whose matrices there are gaps, with one second factor for all.
WEIR_CONFORMANCE(E9, BatchesWithGaps) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    const dense_array a = random_array<double>({4, 3, 5}, 1);
    const dense_array b = random_array<double>({5, 2}, 2);
    const dense_array right = product_of(a, b);
    array x = full({4, 6, 5}, 9, dtype::float64, on)[{slice{}, slice{1, 4}}];
    copy(on, x, to_array<double>(on, a));
    expect_product<double>(on, a, b, x, to_array<double>(on, b));
    for (const slice rows : {slice{0, 3}, slice{0, 6, 2}}) {
        array all = full({4, 6, 2}, -7, dtype::float64, on);
        array out = all[{slice{}, rows}];
        matmul(on, to_array<double>(on, a), to_array<double>(on, b), out);
        EXPECT_LT(error_of<double>(copy(on, out), right.values, 5, norm(a.values) * norm(b.values)), 1.0L);
        const std::vector<double> whole = values_of<double>(all);
        EXPECT_EQ(std::count(whole.begin(), whole.end(), -7.0), 24) << "what lies between stays";
    }
}

/// Rows that share elements: the windows of a line.
WEIR_CONFORMANCE(E9, RowsThatOverlap) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    const dense_array line = random_array<double>({9}, 1);
    const array all = to_array<double>(on, line);
    dense_array windows{{6, 4}, {}};
    for (std::size_t i = 0; i < 6; ++i) {
        windows.values.insert(windows.values.end(), line.values.begin() + static_cast<std::ptrdiff_t>(i),
                              line.values.begin() + static_cast<std::ptrdiff_t>(i + 4));
    }
    const std::vector<std::int64_t> strides{8, 8};
    const array x(all.buffer(), dtype::float64, {6, 4}, strides, 0);
    const dense_array b = random_array<double>({4, 3}, 2);
    expect_product<double>(on, windows, b, x, to_array<double>(on, b));
    const dense_array c = random_array<double>({3, 6}, 3);
    expect_product<double>(on, c, windows, to_array<double>(on, c), x);
}

/// Matrices of a batch that share elements: side by side they would be one matrix, but its rows overlap.
WEIR_CONFORMANCE(E9, BatchesThatOverlap) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    const array all = to_array<double>(on, random_array<double>({12}, 1));
    const array x(all.buffer(), dtype::float64, {3, 2, 4}, std::vector<std::int64_t>{16, 8, 16}, 0);
    const dense_array a{x.shape(), test::exact_values<double>(copy(on, x))};
    const dense_array b = random_array<double>({4, 5}, 2);
    expect_product<double>(on, a, b, x, to_array<double>(on, b));
}

WEIR_CONFORMANCE(E10, FactorsAndWhatIsAdded) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    with_each_type([&]<class T>(T) {
        const dense_array a = random_array<T>({3, 5, 7}, 1);
        const dense_array b = random_array<T>({7, 4}, 2);
        const dense_array product = product_of(a, b);
        for (const shape& extents : std::vector<shape>{{3, 5, 4}, {5, 4}, {1, 4}, {3, 5, 1}, {4}, {1}}) {
            const dense_array c = random_array<T>(extents, 3);
            std::vector<precise> right = test::broadcast_values(c, product.extents);
            for (std::size_t i = 0; i < right.size(); ++i) {
                right[i] = 2.0L * product.values[i] - 0.5L * right[i];
            }
            const array got =
                matmul(on, to_array<T>(on, a), to_array<T>(on, b), {.alpha = 2, .c = to_array<T>(on, c), .beta = -0.5});
            EXPECT_LT(error_of<T>(got, right, 7, 2 * norm(a.values) * norm(b.values)), 1.0L)
                << name_of(dtype_of<T>) << " " << extents.to_string();
        }
    });
    const std::complex<double> alpha(1, 2);
    const dense_array a = random_array<std::complex<double>>({4, 4}, 1);
    dense_array right = product_of(a, a);
    for (precise& each : right.values) {
        each *= precise(alpha);
    }
    const array x = to_array<std::complex<double>>(on, a);
    EXPECT_LT(error_of<std::complex<double>>(matmul(on, x, x, {.alpha = alpha}), right.values, 4,
                                             3 * norm(a.values) * norm(a.values)),
              1.0L);
}

long double gelu(long double x) {
    return x / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846264338327950288L) * (x + 0.044715L * x * x * x)));
}

WEIR_CONFORMANCE(E10, EpilogsOfEachType) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    with_each_type([&]<class T>(T) {
        const dense_array a = random_array<T>({2, 5, 7}, 1);
        const dense_array b = random_array<T>({2, 7, 4}, 2);
        for (const shape& extents : std::vector<shape>{{4}, {5, 1}, {2, 1, 4}, {2, 5, 4}, {1}}) {
            const dense_array bias = random_array<T>(extents, 3);
            for (const matmul_epilog epilog : {matmul_epilog::bias, matmul_epilog::relu, matmul_epilog::gelu,
                                               matmul_epilog::relu_bias, matmul_epilog::gelu_bias}) {
                const bool is_added = epilog == matmul_epilog::bias || epilog == matmul_epilog::relu_bias ||
                                      epilog == matmul_epilog::gelu_bias;
                matmul_options how{.epilog = epilog};
                if (is_added) {
                    how.bias = to_array<T>(on, bias);
                }
                const array x = to_array<T>(on, a);
                const array y = to_array<T>(on, b);
                if (test::is_complex_number<T> && epilog != matmul_epilog::bias) {
                    EXPECT_THROW(static_cast<void>(matmul(on, x, y, how)), argument_error);
                    continue;
                }
                std::vector<precise> right = product_of(a, b).values;
                const std::vector<precise> added = test::broadcast_values(bias, {2, 5, 4});
                for (std::size_t i = 0; i < right.size(); ++i) {
                    right[i] += is_added ? added[i] : 0.0L;
                    if (epilog == matmul_epilog::relu || epilog == matmul_epilog::relu_bias) {
                        right[i] = std::max(right[i].real(), 0.0L);
                    } else if (epilog != matmul_epilog::bias) {
                        right[i] = gelu(right[i].real());
                    }
                }
                EXPECT_LT(error_of<T>(matmul(on, x, y, how), right, 7, 2 * norm(a.values) * norm(b.values)), 1.0L)
                    << name_of(dtype_of<T>) << " " << extents.to_string() << " " << static_cast<int>(epilog);
            }
        }
    });
}

WEIR_CONFORMANCE(E10, OperandsOfDifferentTypesArePromoted) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    const dense_array a = random_array<float16>({3, 4}, 1);
    const dense_array b = random_array<double>({4, 2}, 2);
    expect_product<double>(on, a, b, to_array<float16>(on, a), to_array<double>(on, b));
    const dense_array c = random_array<std::complex<float>>({4, 2}, 3);
    const dense_array real = random_array<float>({3, 4}, 4);
    expect_product<std::complex<float>>(on, real, c, to_array<float>(on, real), to_array<std::complex<float>>(on, c));
    const dense_array half = random_array<float16>({4, 2}, 5);
    expect_product<float>(on, real, half, to_array<float>(on, real), to_array<float16>(on, half));
}

WEIR_CONFORMANCE(E10, WithoutElements) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    const auto none = [&](const shape& of) { return empty(of, dtype::float64, on); };
    EXPECT_EQ(matmul(on, none({0, 3}), none({3, 4})).shape(), (shape{0, 4}));
    EXPECT_EQ(matmul(on, none({0, 2, 3}), none({3, 4})).shape(), (shape{0, 2, 4}));
    EXPECT_EQ(matmul(on, none({2, 3}), none({3, 0})).shape(), (shape{2, 0}));
    EXPECT_EQ(values_of<double>(matmul(on, none({2, 0}), none({0, 3}))), numbers(6, 0.0));
    EXPECT_EQ(values_of<double>(matmul(on, none({0}), none({0}))), numbers{0.0});
    array spoilt = full({2, 3}, std::numeric_limits<double>::quiet_NaN(), dtype::float64, on);
    matmul(on, none({2, 0}), none({0, 3}), spoilt);
    EXPECT_EQ(values_of<double>(spoilt), numbers(6, 0.0)) << "what the result held is not read";
    const array c = full({2, 3}, 4.0, dtype::float64, on);
    EXPECT_EQ(values_of<double>(matmul(on, none({2, 0}), none({0, 3}), {.c = c, .beta = 0.5})), numbers(6, 2.0));
    EXPECT_EQ(values_of<double>(matmul(none({2, 0}), none({0, 3}), {.c = c, .beta = 0.5})), numbers(6, 2.0))
        << "on the current stream of the device where there are elements";
    const array bias = make_array(on, {3}, numbers{1, 2, -3});
    EXPECT_EQ(
        values_of<double>(matmul(on, none({2, 0}), none({0, 3}), {.epilog = matmul_epilog::relu_bias, .bias = bias})),
        (numbers{1, 2, 0, 1, 2, 0}));
    array short_c = full({2, 3}, 3.0, dtype::float16, on);
    EXPECT_EQ(values_of<float16>(matmul(on, empty({2, 0}, dtype::float16, on), empty({0, 3}, dtype::float16, on),
                                        {.c = short_c, .beta = 0.5})),
              std::vector<float16>(6, float16(1.5F)));
}

/// What is not a number goes where the definition has it go, and nothing that is not read spoils a result.
WEIR_CONFORMANCE(E10, NumbersThatAreNone) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    const double nan = std::numeric_limits<double>::quiet_NaN();
    with_each_type([&]<class T>(T) {
        for (const std::int64_t n : {1, 3, 40}) {
            SCOPED_TRACE(name_of(dtype_of<T>) + " " + std::to_string(n));
            array a = ones({4, 5}, dtype_of<T>, on);
            array b = ones({5, n}, dtype_of<T>, on);
            array out = full({4, n}, nan, dtype_of<T>, on);
            matmul(on, a, b, out);
            EXPECT_EQ(test::exact_values<T>(out), std::vector<precise>(static_cast<std::size_t>(4 * n), 5.0L))
                << "what the result held is not read";
            const array spoilt = full({4, n}, nan, dtype_of<T>, on);
            EXPECT_EQ(test::exact_values<T>(matmul(on, a, b, {.c = spoilt, .beta = 0})),
                      std::vector<precise>(static_cast<std::size_t>(4 * n), 5.0L))
                << "with beta 0, c is not read";
            const array no_a = full({4, 5}, nan, dtype_of<T>, on);
            const array no_b = full({5, n}, std::numeric_limits<double>::infinity(), dtype_of<T>, on);
            EXPECT_EQ(test::exact_values<T>(matmul(on, no_a, no_b, {.alpha = 0})),
                      std::vector<precise>(static_cast<std::size_t>(4 * n), 0.0L))
                << "with alpha 0, a and b are not read";
            EXPECT_EQ(test::exact_values<T>(matmul(on, no_a, no_b, {.alpha = 0, .c = spoilt, .beta = 0})),
                      std::vector<precise>(static_cast<std::size_t>(4 * n), 0.0L))
                << "with alpha 0 and beta 0, nothing is read";
            const array c = full({4, n}, 4.0, dtype_of<T>, on);
            EXPECT_EQ(test::exact_values<T>(matmul(on, no_a, no_b, {.alpha = 0, .c = c, .beta = 0.5})),
                      std::vector<precise>(static_cast<std::size_t>(4 * n), 2.0L))
                << "with alpha 0, the result is c times beta";
            fill(on, a[{slice{1, 2}, slice{2, 3}}], nan);
            const std::vector<precise> got = test::exact_values<T>(matmul(on, a, b));
            for (std::size_t i = 0; i < got.size(); ++i) {
                const bool is_spoilt = i / static_cast<std::size_t>(n) == 1;
                EXPECT_EQ(std::isnan(got[i].real()), is_spoilt) << i;
            }
        }
    });
    array a = full({2, 2}, nan, dtype::float64, on);
    EXPECT_TRUE(std::isnan(values_of<double>(matmul(on, a, zeros({2, 2}, dtype::float64, on)))[0]));
}

WEIR_CONFORMANCE(E9, ResultsOverTheirOperands) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    const dense_array a = random_array<double>({4, 4}, 1);
    const dense_array b = random_array<double>({4, 4}, 2);
    const dense_array right = product_of(a, b);
    const auto is_right = [&](const array& got, const std::vector<precise>& wanted) {
        return error_of<double>(got, wanted, 4, 4 * norm(a.values) * norm(b.values)) < 1.0L;
    };
    array x = to_array<double>(on, a);
    matmul(on, x, to_array<double>(on, b), x);
    EXPECT_TRUE(is_right(x, right.values));

    array y = to_array<double>(on, b);
    matmul(on, to_array<double>(on, a), y, y.t());
    EXPECT_TRUE(is_right(copy(on, y.t()), right.values));

    array line = zeros({20}, dtype::float64, on);
    copy(on, line.slice(0, 16).reshape({4, 4}), to_array<double>(on, a));
    matmul(on, line.slice(0, 16).reshape({4, 4}), to_array<double>(on, b), line.slice(4, 20).reshape({4, 4}));
    EXPECT_TRUE(is_right(copy(on, line.slice(4, 20)), right.values));

    // c as the result, in place, and transposed.
    const dense_array c = random_array<double>({4, 4}, 3);
    std::vector<precise> sum(right.values);
    std::vector<precise> turned_sum(right.values);
    for (std::size_t i = 0; i < 16; ++i) {
        sum[i] += 2.0L * c.values[i];
        turned_sum[i] += 2.0L * c.values[i % 4 * 4 + i / 4];
    }
    array z = to_array<double>(on, c);
    matmul(on, to_array<double>(on, a), to_array<double>(on, b), z, {.c = z, .beta = 2});
    EXPECT_TRUE(is_right(z, sum));
    z = to_array<double>(on, c);
    matmul(on, to_array<double>(on, a), to_array<double>(on, b), z, {.c = z.t(), .beta = 2});
    EXPECT_TRUE(is_right(z, turned_sum));

    // A bias that is part of the result.
    array w = to_array<double>(on, c);
    matmul(on, to_array<double>(on, a), to_array<double>(on, b), w,
           {.epilog = matmul_epilog::bias, .bias = w[{slice{0, 1}}]});
    for (std::size_t i = 0; i < 16; ++i) {
        sum[i] = right.values[i] + c.values[i % 4];
    }
    EXPECT_TRUE(is_right(w, sum));
}

/// c is the result, but the library writes to a workspace first: where that is an operand as well, has 16 bits, or steps.
WEIR_CONFORMANCE(E9, ResultsThatAreAddedToThemselvesByWayOfTheWorkspace) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    const array two = full({3, 3}, 2, dtype::float64, on);
    array x = copy(on, two);
    matmul(on, x, x, x, {.c = x, .beta = 1});
    EXPECT_EQ(values_of<double>(x), numbers(9, 14));

    with_each_type([&]<class T>(T) {
        array wide = full({6, 6}, 2, dtype_of<T>, on);
        for (array c : {full({3, 3}, 2, dtype_of<T>, on), wide[{slice{{}, {}, 2}, slice{{}, {}, 2}}],
                        full({3, 3}, 2, dtype_of<T>, on)[{slice{{}, {}, -1}}]}) {
            const array ones_of_it = full({3, 3}, 1, dtype_of<T>, on);
            matmul(on, ones_of_it, ones_of_it, c, {.c = c, .beta = 2});
            EXPECT_EQ(values_of<double>(astype(on, c, dtype::float64)), numbers(9, 7)) << name_of(dtype_of<T>);
        }
        EXPECT_EQ(values_of<double>(astype(on, wide[{1}], dtype::float64)), numbers(6, 2)) << "what lies between";
    });
}

WEIR_CONFORMANCE(E1, ProductsElsewhereBlockAndGiveTheResultBack) {
    WEIR_NEEDS_BLAS();
    const dense_array a = random_array<float>({2, 5, 4}, 1);
    const dense_array b = random_array<float>({4, 3}, 2);
    const device other = here().kind() == device_kind::sim ? cpu() : sim(0);
    const stream on(here());
    array x = empty({2, 4, 5}, dtype::float32, on);
    copy(on, x.transpose({0, 2, 1}), to_array<float>(on, a));
    array y = to_array<float>(on, b);
    array got = matmul(x.transpose({0, 2, 1}), y, {.c = ones({3}, dtype::float32, on), .beta = 0, .execution = other});
    EXPECT_EQ(got.device(), here());
    EXPECT_TRUE(got.ready()) << "the call blocks (rule P2)";
    fill(on, y, 0.0);
    EXPECT_LT(error_of<float>(got, product_of(a, b).values, 4, norm(a.values) * norm(b.values)), 1.0L);
}

}  // namespace
}  // namespace weir
