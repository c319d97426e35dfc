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

/// A number without an element type of its own, as numbers in the source are: a bool, an integer, a real or a complex
/// number. Beside an array it takes the array's type as far as that can be (NumPy's weak scalars, NEP 50).
class WEIR_EXPORT scalar {
public:
    /// What it holds: every integer and real number as the widest of its kind.
    using any = std::variant<bool, std::int64_t, std::uint64_t, double, std::complex<double>>;

    /// @{
    /// From a number of C++, which is kept exactly; floating-point types wider than double are rounded to it.
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
    /// Its kind, which promotion goes by.
    [[nodiscard]] dtype_kind kind() const noexcept;

    /// Throws argument_error if elements of `type` cannot be this number: out of an integer's range, an imaginary part that
    /// is not 0 for real elements. Fractions are cut off for integers, and real numbers are rounded, as NumPy does.
    void expect_fits(dtype type) const;
    /// Writes it as an element of `type`, converted as NumPy's unsafe casting does. `to` has size_of(type) bytes.
    void store(dtype type, std::byte* to) const noexcept;
    /// The element of `type` at `from`.
    [[nodiscard]] static scalar load(dtype type, const std::byte* from) noexcept;
    /// "3", "2.5", "(1+2j)".
    [[nodiscard]] std::string to_string() const;

private:
    any value_;
};

}  // namespace weir
