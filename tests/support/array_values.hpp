// Arrays of every element type with edge-case numbers, and their comparison.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "array/visit.hpp"
#include "support/arrays.hpp"
#include "weir/weir.hpp"

namespace weir::test {

/// Numbers at the edges of ranges, and some others; for real types also those that are not finite.
template <class T>
std::vector<T> interesting(std::uint32_t seed) {
    std::mt19937_64 any(seed);
    std::vector<T> all;
    const std::size_t count = 300;
    if constexpr (detail::is_complex_element<T>) {
        using part = typename T::value_type;
        const std::vector<part> parts = interesting<part>(seed);
        for (const part& one : parts) {
            all.emplace_back(one, parts[any() % parts.size()]);
        }
        return all;
    } else if constexpr (std::is_same_v<T, bool>) {
        for (std::size_t i = 0; i < count; ++i) {
            all.push_back((any() & 1U) != 0);
        }
        return all;
    } else if constexpr (detail::is_short_float<T>) {
        // All kinds of bit patterns, and so all kinds of numbers.
        constexpr std::array<std::uint16_t, 12> edges = {0,      0x8000, 1,      0x3ff,  0x400,  0x3c00,
                                                         0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x7f80, 0xff80};
        for (const std::uint16_t bits : edges) {
            all.push_back(T::from_bits(bits));
        }
        while (all.size() < count) {
            all.push_back(any() % 2 == 0 ? T::from_bits(static_cast<std::uint16_t>(any()))
                                         : T(static_cast<float>(static_cast<int>(any() % 200) - 100)));
        }
        return all;
    } else {
        using limits = std::numeric_limits<T>;
        all.reserve(count);
        for (const T one : {T(0), T(1), T(2), T(3), limits::max(), limits::lowest(), limits::min()}) {
            all.push_back(one);
        }
        if constexpr (std::is_signed_v<T>) {
            all.insert(all.end(), {T(-1), T(-2)});
        }
        if constexpr (std::is_floating_point_v<T>) {
            all.insert(all.end(),
                       {-T(0), limits::infinity(), -limits::infinity(), limits::quiet_NaN(), limits::denorm_min(),
                        T(0.5), T(-2.5), T(65504), T(65520), T(0x1p63), T(-0x1p63), T(0x1p64), T(1e-8), T(5.96e-8)});
        }
        while (all.size() < count) {
            if constexpr (std::is_floating_point_v<T>) {
                const auto power = static_cast<int>(any() % 80) - 40;
                all.push_back(std::ldexp(static_cast<T>(static_cast<std::int32_t>(any())), power - 20));
            } else {
                all.push_back(any() % 2 == 0 ? static_cast<T>(any()) : static_cast<T>(any() % 20));
            }
        }
        return all;
    }
}

template <class T>
array array_of(const stream& s, const std::vector<T>& values) {
    array made = empty(static_cast<std::int64_t>(values.size()), dtype_of<T>, s);
    auto view = made.write<T>();
    for (std::size_t i = 0; i < values.size(); ++i) {
        view[i] = values[i];
    }
    return made;
}

inline array interesting(const stream& s, dtype type, std::uint32_t seed) {
    return detail::visit(type, [&]<class T>(std::type_identity<T>) { return array_of<T>(s, interesting<T>(seed)); });
}

template <class T>
bool same(const T& a, const T& b) {
    if constexpr (detail::is_complex_element<T>) {
        return same(a.real(), b.real()) && same(a.imag(), b.imag());
    } else if constexpr (detail::is_short_float<T>) {
        return same(static_cast<float>(a), static_cast<float>(b));
    } else if constexpr (std::is_floating_point_v<T>) {
        return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof a) == 0;
    } else {
        return a == b;
    }
}

/// How many elements differ: in bits, or in that only one is a number.
inline std::size_t differences(const array& a, const array& b) {
    return detail::visit(a.dtype(), [&]<class T>(std::type_identity<T>) {
        const auto x = values_of<T>(a);
        const auto y = values_of<T>(b);
        std::size_t found = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            found += same<T>(x[i], y[i]) ? 0U : 1U;
        }
        return found;
    });
}

}  // namespace weir::test
