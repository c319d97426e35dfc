#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "weir/dtype.hpp"

namespace weir::detail {

/// Calls `fn(std::type_identity<T>())` with the C++ type of the elements. The type must have arithmetic.
template <class F>
constexpr decltype(auto) visit(dtype type, F&& fn) {
    switch (type.key()) {
        case dtype::bool_.key():
            return fn(std::type_identity<bool>());
        case dtype::int8.key():
            return fn(std::type_identity<std::int8_t>());
        case dtype::int16.key():
            return fn(std::type_identity<std::int16_t>());
        case dtype::int32.key():
            return fn(std::type_identity<std::int32_t>());
        case dtype::int64.key():
            return fn(std::type_identity<std::int64_t>());
        case dtype::uint8.key():
            return fn(std::type_identity<std::uint8_t>());
        case dtype::uint16.key():
            return fn(std::type_identity<std::uint16_t>());
        case dtype::uint32.key():
            return fn(std::type_identity<std::uint32_t>());
        case dtype::uint64.key():
            return fn(std::type_identity<std::uint64_t>());
        case dtype::float16.key():
            return fn(std::type_identity<float16>());
        case dtype::bfloat16.key():
            return fn(std::type_identity<bfloat16>());
        case dtype::float32.key():
            return fn(std::type_identity<float>());
        case dtype::float64.key():
            return fn(std::type_identity<double>());
        case dtype::complex64.key():
            return fn(std::type_identity<std::complex<float>>());
        case dtype::complex128.key():
            return fn(std::type_identity<std::complex<double>>());
        default:
            refuse_arithmetic(type, "arithmetic");
    }
}

template <class T>
inline constexpr bool is_complex_element = is_complex(dtype_of<T>);
template <class T>
inline constexpr bool is_short_float = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

}  // namespace weir::detail
