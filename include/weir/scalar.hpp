// Single numbers. Layer: array.
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "weir/dtype.hpp"
#include "weir/export.hpp"

namespace weir {

/// A number without an element type of its own, like a literal in the source: a bool, an integer, a real or a complex number. Next to an
/// array it takes the array's type if possible (NumPy's weak scalars, NEP 50).
class WEIR_EXPORT scalar {
public:
    /// The stored value: integers and real numbers as the widest type of their kind.
    using any = std::variant<bool, std::int64_t, std::uint64_t, double, std::complex<double>>;

    /// @{
    /// From a number of C++, which is kept exactly; floating-point types wider than double are rounded to double.
    scalar(bool value) noexcept : value_(value) {}  // NOLINT(google-explicit-constructor): a number is the common case
    template <detail::integer_element Integer>
    scalar(Integer value) noexcept {  // NOLINT(google-explicit-constructor)
        if constexpr (std::is_signed_v<Integer>) {
            value_ = static_cast<std::int64_t>(value);
        } else {
            value_ = static_cast<std::uint64_t>(value);
        }
    }
    scalar(float16 value) noexcept : scalar(static_cast<float>(value)) {}   // NOLINT(google-explicit-constructor)
    scalar(bfloat16 value) noexcept : scalar(static_cast<float>(value)) {}  // NOLINT(google-explicit-constructor)
    template <std::floating_point Real>
    scalar(Real value) noexcept : value_(static_cast<double>(value)) {}  // NOLINT(google-explicit-constructor)
    template <std::floating_point Real>
    scalar(std::complex<Real> value) noexcept  // NOLINT(google-explicit-constructor)
        : value_(std::complex<double>(value)) {}
    /// @}
    /// A complex number from its parts.
    scalar(double real, double imaginary) noexcept : value_(std::complex<double>(real, imaginary)) {}

    /// The number.
    [[nodiscard]] const any& value() const noexcept { return value_; }
    /// Its kind, which decides the promotion.
    [[nodiscard]] dtype_kind kind() const noexcept;

    /// Checks that elements of `type` can be this number: throws argument_type_error for a type without arithmetic, argument_error for a
    /// number out of an integer's range, or with an imaginary part that is not 0 for real elements. Fractions are cut off for integers,
    /// and real numbers are rounded, as NumPy does.
    void expect_fits(dtype type) const;
    /// Writes the number as an element of `type`, converted as by NumPy's unsafe casting. `to` has size_of(type) bytes. Throws
    /// argument_type_error for a type without arithmetic.
    void store(dtype type, std::byte* to) const;
    /// The element of `type` at `from`. Throws argument_type_error for a type without arithmetic.
    [[nodiscard]] static scalar load(dtype type, const std::byte* from);
    /// "3", "2.5", "1.0" of a real number, "(1+2j)".
    [[nodiscard]] std::string to_string() const;

private:
    any value_;
};

}  // namespace weir
