// Which matrices Eigen's factorizations refuse: those with pivots that rounding alone keeps from being 0, whatever the scale of rows and
// columns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/arrays.hpp"
#include "support/messages.hpp"
#include "support/sparse_systems.hpp"
#include "weir/error.hpp"
#include "weir/sparse.hpp"

namespace weir {
namespace {

using test::dense_matrix;
using test::make_array;
using test::make_csr;
using test::message_of;
using test::values_of;
using ::testing::HasSubstr;

template <class T>
class SparseEigen : public ::testing::Test {
protected:
    using real = decltype(std::abs(T()));

    /// The solution for this right-hand side.
    static std::vector<T> solution(const dense_matrix<T>& a, const std::vector<T>& b,
                                   matrix_kind kind = matrix_kind::general) {
        const stream on;
        return values_of<T>(solve(on, make_csr(on, a), make_array(on, {a.n}, b), {.kind = kind}));
    }
    static std::string refusal(const dense_matrix<T>& a, matrix_kind kind = matrix_kind::general) {
        return message_of<operation_error>(
            [&] { static_cast<void>(solution(a, std::vector<T>(static_cast<std::size_t>(a.n), T(1)), kind)); });
    }
    /// The second difference on a circle of n points, plus `shift` on the diagonal. Without a shift constants are mapped to 0.
    static dense_matrix<T> ring(std::int64_t n, real shift) {
        dense_matrix<T> made{n, std::vector<T>(static_cast<std::size_t>(n * n), T(0))};
        for (std::int64_t i = 0; i < n; ++i) {
            made.at(i, i) = T(real(0.2) + shift);
            made.at(i, (i + 1) % n) = T(real(-0.1));
            made.at((i + 1) % n, i) = T(real(-0.1));
        }
        return made;
    }
};
using element_types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(SparseEigen, element_types);

TYPED_TEST(SparseEigen, PivotsThatAreRoundingErrorsMakeAMatrixSingular) {
    using T = TypeParam;
    using part = typename TestFixture::real;
    const dense_matrix<T> thirds{2, {T(part(0.1)), T(part(0.2)), T(part(0.3)), T(part(0.6))}};
    EXPECT_THAT(this->refusal(thirds), HasSubstr("the matrix is singular"));
    const dense_matrix<T> ring = this->ring(100, 0);
    EXPECT_THAT(this->refusal(ring), HasSubstr("the matrix is singular"));
    EXPECT_THAT(this->refusal(ring, matrix_kind::positive_definite), HasSubstr("not positive definite"));
}

TYPED_TEST(SparseEigen, NearlySingularMatricesAreSolved) {
    using T = TypeParam;
    using part = typename TestFixture::real;
    const auto shift = 1000 * std::numeric_limits<part>::epsilon();
    const dense_matrix<T> ring = this->ring(100, shift);
    for (const matrix_kind kind : {matrix_kind::general, matrix_kind::positive_definite}) {
        EXPECT_EQ(this->refusal(ring, kind), "nothing was thrown");
    }
}

TYPED_TEST(SparseEigen, TheScaleOfRowsAndColumnsDoesNotMatter) {
    using T = TypeParam;
    using part = typename TestFixture::real;
    // Powers of two, which round nothing.
    const auto unit = [](std::int64_t j) { return std::ldexp(part(1), static_cast<int>(6 * ((j * 5) % 12))); };
    dense_matrix<T> by_column = test::sparse_matrix<T>(matrix_kind::general, 12);
    dense_matrix<T> by_row{12, std::vector<T>(144, T(0))};
    for (std::int64_t i = 0; i < 12; ++i) {
        for (std::int64_t j = 0; j < 12; ++j) {
            by_column.at(i, j) *= unit(j);
        }
        by_row.at(i, i) = T(unit(i));
        by_row.at(i, std::min<std::int64_t>(i + 1, 11)) = T(unit(i));
    }
    EXPECT_EQ(this->refusal(by_column), "nothing was thrown");
    EXPECT_EQ(this->refusal(by_row), "nothing was thrown");
    dense_matrix<T> definite = this->ring(12, part(0.1));
    for (std::int64_t i = 0; i < 12; ++i) {
        for (std::int64_t j = 0; j < 12; ++j) {
            definite.at(i, j) *= std::ldexp(part(1), static_cast<int>(3 * (i + j)));
        }
    }
    EXPECT_EQ(this->refusal(definite, matrix_kind::positive_definite), "nothing was thrown");
}

TYPED_TEST(SparseEigen, ElementsThatAreNotFiniteAreNamed) {
    using T = TypeParam;
    using part = typename TestFixture::real;
    for (const part wrong : {std::numeric_limits<part>::quiet_NaN(), std::numeric_limits<part>::infinity()}) {
        const dense_matrix<T> a{2, {T(1), T(0), T(0), T(wrong)}};
        for (const matrix_kind kind : {matrix_kind::general, matrix_kind::positive_definite}) {
            EXPECT_THAT(this->refusal(a, kind), HasSubstr("values[1] of the matrix is not finite"));
        }
    }
}

}  // namespace
}  // namespace weir
