#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "array/visit.hpp"
#include "weir/dtype.hpp"

namespace weir::convert {

/// A real number as an integer: without its fraction, modulo 2 to the power of the integer's bits. Values beyond 64 bits and
/// NaN count as the least 64-bit integer (NumPy leaves these undefined).
template <class Integer, class Real>
[[nodiscard]] Integer to_integer(Real value) noexcept {
    constexpr auto limit = static_cast<Real>(0x1p63);
    if (value >= -limit && value < limit) {
        return static_cast<Integer>(static_cast<std::int64_t>(value));
    }
    if (std::is_same_v<Integer, std::uint64_t> && value >= limit && value < 2 * limit) {
        return static_cast<Integer>(static_cast<std::uint64_t>(value));
    }
    return static_cast<Integer>(std::numeric_limits<std::int64_t>::min());
}

/// Converts one element to another type as NumPy's unsafe casting does: integers wrap, fractions and imaginary parts are dropped,
/// floating-point numbers are rounded to nearest.
template <class To, class From>
[[nodiscard]] To element(const From& from) noexcept {
    if constexpr (std::is_same_v<To, From>) {
        return from;
    } else if constexpr (detail::is_complex_element<From>) {
        if constexpr (std::is_same_v<To, bool>) {
            return from != From();
        } else if constexpr (detail::is_complex_element<To>) {
            return To(from);
        } else {
            return element<To>(from.real());
        }
    } else if constexpr (std::is_same_v<To, bool>) {
        return from != From(0);
    } else if constexpr (detail::is_complex_element<To>) {
        return To(element<typename To::value_type>(from));
    } else if constexpr (detail::is_short_float<From>) {
        return element<To>(static_cast<float>(from));
    } else if constexpr (detail::is_short_float<To>) {
        if constexpr (std::is_same_v<From, bool>) {
            return To(from ? 1.0F : 0.0F);
        } else {
            return To(from);
        }
    } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
        return to_integer<To>(from);
    } else {
        return static_cast<To>(from);
    }
}

/// Converts `count` packed elements.
using function = void (*)(const std::byte* from, std::byte* to, std::size_t count) noexcept;
[[nodiscard]] function between(dtype from, dtype to) noexcept;

}  // namespace weir::convert
