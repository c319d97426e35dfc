#include "weir/scalar.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "array/convert.hpp"
#include "array/visit.hpp"
#include "weir/error.hpp"

namespace weir {

namespace {

bool fits_integers(const scalar::any& value, dtype type) {
    return detail::visit(type, [&]<class T>(std::type_identity<T>) {
        if constexpr (detail::integer_element<T>) {
            if (const auto* const with_sign = std::get_if<std::int64_t>(&value)) {
                return std::in_range<T>(*with_sign);
            }
            if (const auto* const without = std::get_if<std::uint64_t>(&value)) {
                return std::in_range<T>(*without);
            }
            if (const auto* const real = std::get_if<double>(&value)) {
                // The bounds are exact: powers of two. NaN is in no range.
                const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
                return std::trunc(*real) < beyond && std::trunc(*real) >= (std::is_signed_v<T> ? -beyond : 0.0);
            }
        }
        return true;
    });
}

/// The fewest digits that are this number, as Python has them.
std::string digits_of(double value) {
    const double size = std::abs(value);
    const bool is_usual = size == 0 || (size >= 1e-4 && size < 1e16);
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.begin(), text.end(), value,
                                   is_usual ? std::chars_format::fixed : std::chars_format::scientific);
    return {text.data(), end.ptr};
}

}  // namespace

dtype_kind scalar::kind() const noexcept {
    constexpr std::array kinds = {dtype_kind::boolean, dtype_kind::signed_integer, dtype_kind::signed_integer,
                                  dtype_kind::real, dtype_kind::complex};
    return kinds[value_.index()];
}

void scalar::expect_fits(dtype type) const {
    detail::expect_arithmetic(type, "a number");
    if (!fits_integers(value_, type)) {
        throw argument_error("the number " + to_string() + " is out of range for " + std::string(name_of(type)) +
                             ": take a wider dtype, or a number in its range");
    }
    const auto* const complex = std::get_if<std::complex<double>>(&value_);
    if (complex != nullptr && complex->imag() != 0 && !is_complex(type)) {
        throw argument_error("the number " + to_string() + " for elements of " + std::string(name_of(type)) +
                             ": take a complex dtype, or a number without an imaginary part");
    }
}

void scalar::store(dtype type, std::byte* to) const {
    detail::expect_arithmetic(type, "a number");
    detail::visit(type, [&]<class T>(std::type_identity<T>) {
        const T element = std::visit([](const auto& value) { return convert::element<T>(value); }, value_);
        std::memcpy(to, &element, sizeof element);
    });
}

scalar scalar::load(dtype type, const std::byte* from) {
    detail::expect_arithmetic(type, "a number");
    return detail::visit(type, [&]<class T>(std::type_identity<T>) {
        T element{};
        std::memcpy(&element, from, sizeof element);
        return scalar(element);
    });
}

std::string scalar::to_string() const {
    return std::visit(
        [](const auto& value) -> std::string {
            using held = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<held, bool>) {
                return value ? "true" : "false";
            } else if constexpr (std::is_same_v<held, double>) {
                std::string text = digits_of(value);
                return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
            } else if constexpr (std::is_same_v<held, std::complex<double>>) {
                const std::string imaginary = digits_of(value.imag());
                return "(" + digits_of(value.real()) + (imaginary.front() == '-' ? "" : "+") + imaginary + "j)";
            } else {
                return std::to_string(value);
            }
        },
        value_);
}

}  // namespace weir
