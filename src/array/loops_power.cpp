#include <cmath>
#include <complex>
#include <cstdlib>
#include <type_traits>

#include "array/loops.hpp"
#include "array/visit.hpp"
#include "weir/error.hpp"

namespace weir::loops {

namespace {

/// Whole exponents up to this, in magnitude, are products of complex numbers, which are more accurate than the polar form; as in NumPy.
constexpr int most_factors = 99;

/// `base` to the power of `exponent`, which is not 0. The CUDA devices' prelude has the same.
template <class T>
T multiplied_out(const T& base, int exponent) {
    const auto times = [](const T& a, const T& b) {
        return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
    };
    auto left = static_cast<unsigned>(std::abs(exponent));
    T square = base;
    for (; (left & 1U) == 0; left >>= 1U) {
        square = times(square, square);
    }
    T product = square;
    while ((left >>= 1U) != 0) {
        square = times(square, square);
        if ((left & 1U) != 0) {
            product = times(product, square);
        }
    }
    return exponent < 0 ? T(1) / product : product;
}

template <class T>
T raised(const T& base, const T& exponent) {
    if constexpr (detail::is_complex_element<T>) {
        if (exponent == T()) {
            return T(1);
        }
        if (exponent.imag() == 0 && std::abs(exponent.real()) <= most_factors &&
            exponent.real() == std::trunc(exponent.real()) && (base != T() || exponent.real() > 0)) {
            return multiplied_out(base, static_cast<int>(exponent.real()));
        }
        return std::pow(base, exponent);
    } else if constexpr (std::is_floating_point_v<T>) {
        return std::pow(base, exponent);
    } else {
        using bits = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;
        if constexpr (std::is_signed_v<T>) {
            if (exponent < 0) {
                throw argument_error("integers to a negative power: convert them to a floating-point type first");
            }
        }
        bits product = 1;
        auto square = static_cast<bits>(base);         // NOLINT(bugprone-signed-char-misuse): modulo 2**n on purpose
        for (auto left = static_cast<bits>(exponent);  // NOLINT(bugprone-signed-char-misuse): not negative
             left != 0; left >>= 1U) {
            product *= (left & 1U) != 0 ? square : 1;
            square *= square;
        }
        return static_cast<T>(product);
    }
}

template <class T>
void each(const std::byte* a, const std::byte* b, std::byte* out, std::size_t count) {
    const auto* const x = reinterpret_cast<const T*>(a);
    const auto* const y = reinterpret_cast<const T*>(b);
    auto* const z = reinterpret_cast<T*>(out);
    for (std::size_t i = 0; i < count; ++i) {
        z[i] = raised<T>(x[i], y[i]);
    }
}

}  // namespace

binary power(dtype type) noexcept {
    return detail::visit(type, []<class T>(std::type_identity<T>) -> binary {
        if constexpr (detail::is_short_float<T> || std::is_same_v<T, bool>) {
            return nullptr;
        } else {
            return each<T>;
        }
    });
}

}  // namespace weir::loops
