// Products of matrices by their definition, in long double, to hold others against.
#pragma once

#include <gtest/gtest.h>

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
#include "support/devices.hpp"
#include "support/dft.hpp"
#include "support/fake_cuda.hpp"
#include "weir/dtype.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"
#include "weir/linalg.hpp"
#include "weir/shape.hpp"
#include "weir/stream.hpp"

namespace weir::test {

/// Exact numbers in C order.
struct dense_array {
    shape extents;
    std::vector<precise> values;
};

template <class T>
inline constexpr bool is_complex_number =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

/// A number as a type knows it.
template <class T>
T number_as(const precise& value) {
    if constexpr (is_complex_number<T>) {
        using part = typename T::value_type;
        return {static_cast<part>(value.real()), static_cast<part>(value.imag())};
    } else if constexpr (std::is_floating_point_v<T>) {
        return static_cast<T>(value.real());
    } else {
        return T(static_cast<float>(value.real()));
    }
}
template <class T>
precise exact(const T& value) {
    if constexpr (is_complex_number<T>) {
        return {static_cast<long double>(value.real()), static_cast<long double>(value.imag())};
    } else {
        return static_cast<long double>(value);
    }
}

/// Numbers between -1 and 1 that elements of type T can be.
template <class T>
dense_array random_array(const shape& extents, unsigned seed) {
    dense_array made{extents, random_numbers(static_cast<std::size_t>(extents.elements()), seed)};
    for (precise& each : made.values) {
        each = exact(number_as<T>(each));
    }
    return made;
}

template <class T>
array to_array(const stream_ref& on, const dense_array& of) {
    std::vector<T> values;
    for (const precise& each : of.values) {
        values.push_back(number_as<T>(each));
    }
    return make_array(on, of.extents, values);
}

/// The elements of `of`, broadcast to a shape.
inline std::vector<precise> broadcast_values(const dense_array& of, const shape& to) {
    std::vector<precise> made;
    const std::size_t missing = to.dimensions() - of.extents.dimensions();
    for (std::int64_t i = 0; i < to.elements(); ++i) {
        std::int64_t rest = i;
        std::int64_t at = 0;
        std::int64_t step = 1;
        for (std::size_t axis = to.dimensions(); axis > missing; --axis) {
            const std::int64_t extent = of.extents[axis - 1 - missing];
            at += extent == 1 ? 0 : rest % to[axis - 1] * step;
            rest /= to[axis - 1];
            step *= extent;
        }
        made.push_back(of.values[static_cast<std::size_t>(at)]);
    }
    return made;
}

/// The shape of a product, by NumPy's rules.
struct product_shape {
    std::vector<std::int64_t> batch;
    std::int64_t m = 1;
    std::int64_t n = 1;
    std::int64_t k = 1;
    shape result;

    product_shape(const shape& a, const shape& b) {
        const auto leading = [](const shape& of) {
            const std::size_t count = of.dimensions() > 2 ? of.dimensions() - 2 : 0;
            return shape(of.extents().first(count));
        };
        const shape both = broadcast_shapes(leading(a), leading(b));
        batch.assign(both.extents().begin(), both.extents().end());
        k = a[a.dimensions() - 1];
        m = a.dimensions() > 1 ? a[a.dimensions() - 2] : 1;
        n = b.dimensions() > 1 ? b[b.dimensions() - 1] : 1;
        std::vector<std::int64_t> extents = batch;
        if (a.dimensions() > 1) {
            extents.push_back(m);
        }
        if (b.dimensions() > 1) {
            extents.push_back(n);
        }
        result = shape(std::span<const std::int64_t>(extents));
    }
    [[nodiscard]] shape with(std::int64_t rows, std::int64_t columns) const {
        std::vector<std::int64_t> extents = batch;
        extents.push_back(rows);
        extents.push_back(columns);
        return shape(std::span<const std::int64_t>(extents));
    }
};

/// a b, sum by sum.
inline dense_array product_of(const dense_array& a, const dense_array& b) {
    const product_shape s(a.extents, b.extents);
    dense_array left = a;
    dense_array right = b;
    if (a.extents.dimensions() == 1) {
        left.extents = {1, s.k};
    }
    if (b.extents.dimensions() == 1) {
        right.extents = {s.k, 1};
    }
    const std::vector<precise> x = broadcast_values(left, s.with(s.m, s.k));
    const std::vector<precise> y = broadcast_values(right, s.with(s.k, s.n));
    dense_array made{s.result, std::vector<precise>(static_cast<std::size_t>(s.result.elements()))};
    for (std::int64_t i = 0; i < s.result.elements(); ++i) {
        const std::int64_t matrix = i / (s.m * s.n);
        const std::int64_t row = i / s.n % s.m;
        const std::int64_t column = i % s.n;
        precise sum = 0;
        for (std::int64_t j = 0; j < s.k; ++j) {
            sum += x[static_cast<std::size_t>((matrix * s.m + row) * s.k + j)] *
                   y[static_cast<std::size_t>((matrix * s.k + j) * s.n + column)];
        }
        made.values[static_cast<std::size_t>(i)] = sum;
    }
    return made;
}

/// The relative rounding of a type, and of the type in which it is computed.
template <class T>
constexpr long double rounding_of() {
    if constexpr (std::is_same_v<T, float16>) {
        return 0x1p-11L;
    } else if constexpr (std::is_same_v<T, bfloat16>) {
        return 0x1p-8L;
    } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, std::complex<float>>) {
        return 0x1p-24L;
    } else {
        return 0x1p-53L;
    }
}

/// Values of an array as exact numbers. Blocks.
template <class T>
std::vector<precise> exact_values(const array& of) {
    std::vector<precise> made;
    for (const T& each : values_of<T>(of)) {
        made.push_back(exact(each));
    }
    return made;
}

/// How far `got` is from what is right, in units of what rounding may do: below 1 it is right. The sums have `depth` terms, and the
/// products of the factors' elements are about `size` in norm (Higham, Accuracy and Stability of Numerical Algorithms, section 3.5).
template <class T>
long double error_of(const array& got, const std::vector<precise>& right, std::int64_t depth, long double size) {
    const std::vector<precise> values = exact_values<T>(got);
    if (values.size() != right.size()) {
        return std::numeric_limits<long double>::infinity();
    }
    std::vector<precise> difference(right);
    for (std::size_t i = 0; i < right.size(); ++i) {
        difference[i] -= values[i];
    }
    const long double computed = std::min(rounding_of<T>(), rounding_of<float>());
    const long double allowed =
        4 * (computed * static_cast<long double>(depth + 2) * (size + norm(right)) + rounding_of<T>() * norm(right));
    return norm(difference) / allowed;
}

/// What the machine lacks to multiply on a device; empty if nothing.
inline std::string missing_blas(device where) {
    try {
        const stream on(where);
        const array one = ones({1, 1}, dtype::float64, on);
        static_cast<void>(values_of<double>(matmul(on, one, one)));
        return {};
    } catch (const missing_library& missing) {
        return missing.what();
    }
}

}  // namespace weir::test

/// Skips a test on a device for which the library is not installed, and says so. The fakes have one always.
#define WEIR_NEEDS_BLAS()                                                                             \
    if (const std::string missing = weir::test::missing_blas(weir::test::here()); !missing.empty()) { \
        ASSERT_FALSE(weir::test::fake_cuda::in_use()) << missing;                                     \
        GTEST_SKIP() << missing;                                                                      \
    }
