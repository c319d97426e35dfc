// Element types. Layer: array.
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "weir/export.hpp"
#include "weir/float16.hpp"

namespace weir {

/// The element type of an array, known at run time. Names are NumPy's, and ml_dtypes' for bfloat16.
enum class dtype : std::uint8_t {
    bool_,  ///< one byte, 0 or 1; its name is "bool"
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    complex128,
};

/// What kind of numbers elements are, in the order in which NumPy's promotion goes up.
enum class dtype_kind : std::uint8_t { boolean, unsigned_integer, signed_integer, real, complex };

/// What kind of numbers elements of this type are.
[[nodiscard]] constexpr dtype_kind kind_of(dtype type) noexcept {
    if (type == dtype::bool_) {
        return dtype_kind::boolean;
    }
    if (type <= dtype::int64) {
        return dtype_kind::signed_integer;
    }
    if (type <= dtype::uint64) {
        return dtype_kind::unsigned_integer;
    }
    return type <= dtype::float64 ? dtype_kind::real : dtype_kind::complex;
}

/// Whether elements are complex numbers.
[[nodiscard]] constexpr bool is_complex(dtype type) noexcept { return kind_of(type) == dtype_kind::complex; }
/// Whether elements are real floating-point numbers.
[[nodiscard]] constexpr bool is_real(dtype type) noexcept { return kind_of(type) == dtype_kind::real; }
/// Whether elements are integers, with or without sign; bool is none.
[[nodiscard]] constexpr bool is_integer(dtype type) noexcept {
    return kind_of(type) == dtype_kind::signed_integer || kind_of(type) == dtype_kind::unsigned_integer;
}

/// Bytes of one element.
[[nodiscard]] constexpr std::size_t size_of(dtype type) noexcept {
    constexpr std::uint8_t sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
    return sizes[static_cast<std::size_t>(type)];
}

/// What an element's address is a multiple of: complex numbers are aligned as their parts are.
[[nodiscard]] constexpr std::size_t alignment_of(dtype type) noexcept {
    return is_complex(type) ? size_of(type) / 2 : size_of(type);
}

/// "float32", ...
[[nodiscard]] WEIR_EXPORT std::string_view name_of(dtype type) noexcept;
/// The dtype of that name. Throws argument_type_error, which lists the names.
[[nodiscard]] WEIR_EXPORT dtype dtype_from_name(std::string_view name);
/// All of them, in the order of the enumeration.
[[nodiscard]] WEIR_EXPORT std::span<const dtype> all_dtypes() noexcept;

namespace detail {

template <class T>
concept integer_element =
    std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
    !std::same_as<T, char8_t> && !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

template <class T>
struct dtype_for;
/// By size: long and long long are the same element type where they have the same size.
template <integer_element T>
struct dtype_for<T> {
    static constexpr int power = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    static constexpr auto value =
        static_cast<dtype>(static_cast<int>(std::is_signed_v<T> ? dtype::int8 : dtype::uint8) + power);
};
template <>
struct dtype_for<bool> {
    static constexpr dtype value = dtype::bool_;
};
template <>
struct dtype_for<float16> {
    static constexpr dtype value = dtype::float16;
};
template <>
struct dtype_for<bfloat16> {
    static constexpr dtype value = dtype::bfloat16;
};
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

/// The dtype of a C++ element type: bool, integers, weir::float16, weir::bfloat16, float, double, and std::complex of the
/// last two.
template <class T>
inline constexpr dtype dtype_of = detail::dtype_for<T>::value;

}  // namespace weir
