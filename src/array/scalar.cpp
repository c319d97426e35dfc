#include "weir/scalar.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
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

}  // namespace

dtype_kind scalar::kind() const noexcept {
    constexpr std::array kinds = {dtype_kind::boolean, dtype_kind::signed_integer, dtype_kind::signed_integer,
                                  dtype_kind::real, dtype_kind::complex};
    return kinds[value_.index()];
}

void scalar::expect_fits(dtype type) const {
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

void scalar::store(dtype type, std::byte* to) const noexcept {
    detail::visit(type, [&]<class T>(std::type_identity<T>) {
        const T element = std::visit([](const auto& value) { return convert::element<T>(value); }, value_);
        std::memcpy(to, &element, sizeof element);
    });
}

scalar scalar::load(dtype type, const std::byte* from) noexcept {
    return detail::visit(type, [&]<class T>(std::type_identity<T>) {
        T element{};
        std::memcpy(&element, from, sizeof element);
        return scalar(element);
    });
}

std::string scalar::to_string() const {
    std::ostringstream text;
    text.precision(17);
    if (const auto* const complex = std::get_if<std::complex<double>>(&value_)) {
        text << '(' << complex->real() << std::showpos << complex->imag() << "j)";
    } else {
        std::visit(
            [&](const auto& value) {
                if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, std::complex<double>>) {
                    text << std::boolalpha << value;
                }
            },
            value_);
    }
    return text.str();
}

}  // namespace weir
