// Small sparse systems, and the error of their solutions.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "support/arrays.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"
#include "weir/sparse.hpp"
#include "weir/stream.hpp"

namespace weir::test {

/// A square matrix, all elements row by row.
template <class T>
struct dense_matrix {
    std::int64_t n = 0;
    std::vector<T> elements;

    [[nodiscard]] const T& at(std::int64_t i, std::int64_t j) const {
        return elements[static_cast<std::size_t>(i * n + j)];
    }
    [[nodiscard]] T& at(std::int64_t i, std::int64_t j) { return elements[static_cast<std::size_t>(i * n + j)]; }
};

/// A number that differs from place to place, with an imaginary part if the type has one.
template <class T>
T number_at(std::int64_t i, std::int64_t j) {
    const auto mixed = [](std::int64_t x) { return static_cast<double>((x * 37 + 11) % 19) / 10 - 0.9; };
    if constexpr (std::is_floating_point_v<T>) {
        return static_cast<T>(mixed(3 * i + 5 * j));
    } else {
        using real = typename T::value_type;
        return T(static_cast<real>(mixed(3 * i + 5 * j)), static_cast<real>(mixed(7 * i + 2 * j)));
    }
}

template <class T>
T conjugate_of(const T& value) {
    if constexpr (std::is_floating_point_v<T>) {
        return value;
    } else {
        return std::conj(value);
    }
}

/// A well conditioned matrix of the kind, with about five elements in a row; of a general one the diagonal is small, so that pivots
/// must be sought.
template <class T>
dense_matrix<T> sparse_matrix(matrix_kind kind, std::int64_t n) {
    dense_matrix<T> made{n, std::vector<T>(static_cast<std::size_t>(n * n), T(0))};
    const auto is_stored = [&](std::int64_t i, std::int64_t j) { return (i * 7 + j * 3) % (n / 2 + 2) == 0; };
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < i; ++j) {
            if (kind == matrix_kind::general) {
                made.at(i, j) = is_stored(i, j) ? number_at<T>(i, j) / T(4) : T(0);
                made.at(j, i) = is_stored(j, i) ? number_at<T>(j, i) / T(4) : T(0);
            } else if (is_stored(i, j)) {
                made.at(i, j) = number_at<T>(i, j);
                made.at(j, i) = kind == matrix_kind::symmetric ? made.at(i, j) : conjugate_of(made.at(i, j));
            }
        }
        made.at(i, i) = kind == matrix_kind::positive_definite ? T(12) : T(i % 2 == 0 ? 9 : -9);
    }
    if (kind == matrix_kind::general && n > 1) {
        // Rows in another order: the diagonal has zeros then.
        dense_matrix<T> turned = made;
        for (std::int64_t i = 0; i < n; ++i) {
            for (std::int64_t j = 0; j < n; ++j) {
                turned.at((i + 1) % n, j) = made.at(i, j);
            }
        }
        return turned;
    }
    return made;
}

template <class T, class Index = std::int32_t>
struct csr_elements {
    std::vector<Index> offsets{0};
    std::vector<Index> columns;
    std::vector<T> values;
};

/// The stored elements of it: those that are not 0, of one triangle or both.
template <class T, class Index = std::int32_t>
csr_elements<T, Index> stored(const dense_matrix<T>& a, matrix_triangle which = matrix_triangle::full) {
    csr_elements<T, Index> made;
    for (std::int64_t i = 0; i < a.n; ++i) {
        for (std::int64_t j = 0; j < a.n; ++j) {
            const bool is_meant =
                which == matrix_triangle::full || i == j || (which == matrix_triangle::lower) == (j < i);
            if (is_meant && a.at(i, j) != T(0)) {
                made.columns.push_back(static_cast<Index>(j));
                made.values.push_back(a.at(i, j));
            }
        }
        made.offsets.push_back(static_cast<Index>(made.columns.size()));
    }
    return made;
}

/// On the stream's device.
template <class T, class Index>
csr_matrix make_csr(const stream_ref& on, const csr_elements<T, Index>& of) {
    const auto n = static_cast<std::int64_t>(of.offsets.size()) - 1;
    const auto nonzeros = static_cast<std::int64_t>(of.columns.size());
    return {make_array(on, {n + 1}, of.offsets),
            make_array(on, {nonzeros}, of.columns),
            make_array(on, {nonzeros}, of.values),
            {n, n}};
}

template <class T, class Index = std::int32_t>
csr_matrix make_csr(const stream_ref& on, const dense_matrix<T>& a, matrix_triangle which = matrix_triangle::full) {
    return make_csr(on, stored<T, Index>(a, which));
}

template <class T>
std::complex<double> as_complex(const T& value) {
    if constexpr (std::is_floating_point_v<T>) {
        return static_cast<double>(value);
    } else {
        return std::complex<double>(value);
    }
}

/// The largest element of A x - b, in units of the rounding error of numbers of that size.
template <class T>
double residual(const dense_matrix<T>& a, const std::vector<T>& x, const std::vector<T>& b) {
    const auto columns = static_cast<std::int64_t>(b.size()) / a.n;
    double worst = 0;
    for (std::int64_t i = 0; i < a.n; ++i) {
        for (std::int64_t c = 0; c < columns; ++c) {
            std::complex<double> sum = -as_complex(b[static_cast<std::size_t>(i * columns + c)]);
            for (std::int64_t j = 0; j < a.n; ++j) {
                sum += as_complex(a.at(i, j)) * as_complex(x[static_cast<std::size_t>(j * columns + c)]);
            }
            worst = std::max(worst, std::abs(sum));
        }
    }
    using real = decltype(std::abs(T()));
    return worst / (static_cast<double>(std::numeric_limits<real>::epsilon()) * 20 * static_cast<double>(a.n));
}

template <class T>
std::vector<T> right_hand_side(std::int64_t n, std::int64_t columns = 1) {
    std::vector<T> made;
    for (std::int64_t i = 0; i < n * columns; ++i) {
        made.push_back(number_at<T>(i, 3) + T(1));
    }
    return made;
}

/// Matches solutions of small, well conditioned systems: a library may round anywhere.
inline auto are_near(const std::vector<double>& wanted) {
    return ::testing::Pointwise(::testing::DoubleNear(1e-12), wanted);
}

/// Why systems cannot be solved on the device: a library that is not installed. Empty if they can.
inline std::string missing_solver(device where) {
    try {
        const stream on(where);
        dense_matrix<double> one{1, {1.0}};
        array b = make_array(on, {1}, std::vector<double>{1.0});
        static_cast<void>(values_of<double>(solve(on, make_csr(on, one), b)));
        return {};
    } catch (const missing_library& missing) {
        return missing.what();
    }
}

}  // namespace weir::test
