// Element types. Layer: array.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/export.hpp"

namespace weir {

/// The element type of an array, known at run time. Names are NumPy's.
enum class dtype : std::uint8_t { float32, float64, complex64, complex128 };

/// Bytes of one element.
[[nodiscard]] constexpr std::size_t size_of(dtype type) noexcept {
    switch (type) {
        case dtype::float32:
            return 4;
        case dtype::float64:
        case dtype::complex64:
            return 8;
        case dtype::complex128:
            return 16;
    }
    return 0;
}

/// "float32", ...
[[nodiscard]] WEIR_EXPORT std::string_view name_of(dtype type) noexcept;

/// Whether elements are complex numbers.
[[nodiscard]] constexpr bool is_complex(dtype type) noexcept {
    return type == dtype::complex64 || type == dtype::complex128;
}

namespace detail {
template <class T>
struct dtype_for;
template <>
struct dtype_for<float> {
    static constexpr dtype value = dtype::float32;
};
template <>
struct dtype_for<double> {
    static constexpr dtype value = dtype::float64;
};
template <>
struct dtype_for<std::complex<float>> {
    static constexpr dtype value = dtype::complex64;
};
template <>
struct dtype_for<std::complex<double>> {
    static constexpr dtype value = dtype::complex128;
};
}  // namespace detail

/// The dtype of a C++ element type: float, double, and std::complex of them.
template <class T>
inline constexpr dtype dtype_of = detail::dtype_for<T>::value;

}  // namespace weir
