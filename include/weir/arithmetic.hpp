// Arithmetic on whole arrays, element by element. Layer: array.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>
#include <variant>

#include "weir/array.hpp"
#include "weir/completion.hpp"
#include "weir/export.hpp"
#include "weir/on.hpp"
#include "weir/scalar.hpp"

namespace weir {

/// An element-wise operation on two operands.
enum class binary_operation : std::uint8_t {
    add,       ///< on bool: or
    subtract,  ///< not on bool
    multiply,  ///< on bool: and
    divide,    ///< on integers: as float64
    power,     ///< on integers: an integer; a negative exponent is an error
    equal,
    not_equal,
    less,
    less_equal,
    greater,
    greater_equal,
    bitwise_and,  ///< on bool and integers, as the next two
    bitwise_or,
    bitwise_xor,
};

/// An element-wise operation on one operand.
enum class unary_operation : std::uint8_t {
    negative,  ///< not on bool
    invert,    ///< on integers: every bit; on bool: not
};

/// The element type of arithmetic between two types: NumPy's promotion. Throws argument_type_error if there is none (bfloat16 with
/// float16, or with integers of more than 8 bits).
[[nodiscard]] WEIR_EXPORT dtype promote_types(dtype a, dtype b);

/// An operand of arithmetic: an array or a number. Refers to a named array, and keeps a temporary array. Stores the line of the program
/// that made it.
class operand {
public:
    /// @{
    /// From an array, which must outlive the operand, a temporary array, or a number.
    operand(const array& x,  // NOLINT(google-explicit-constructor): for arguments
            source_location where = source_location::current()) noexcept
        : value_(&x), where_(where) {}
    operand(array&& x,  // NOLINT(google-explicit-constructor): for arguments
            source_location where = source_location::current()) noexcept
        : value_(std::move(x)), where_(where) {}
    template <std::convertible_to<scalar> Number>
        requires(!std::convertible_to<Number, const array&>)
    operand(const Number& number,  // NOLINT(google-explicit-constructor): for arguments
            source_location where = source_location::current())
    noexcept : value_(scalar(number)), where_(where) {}
    /// @}

    /// Whether it is an array.
    [[nodiscard]] bool is_array() const noexcept { return !std::holds_alternative<scalar>(value_); }
    /// The array, if it is one.
    [[nodiscard]] const array& of_array() const noexcept {
        const array* const kept = std::get_if<array>(&value_);
        return kept != nullptr ? *kept : **std::get_if<const array*>(&value_);
    }
    /// The number, if it is one.
    [[nodiscard]] const scalar& number() const noexcept { return *std::get_if<scalar>(&value_); }
    /// The line of the program that made the operand.
    [[nodiscard]] const source_location& where() const noexcept { return where_; }

private:
    std::variant<const array*, scalar, array> value_;
    source_location where_;
};

/// A new array with the result of `what` for each pair of elements. Shapes are broadcast and types are promoted as NumPy 2 does; a
/// number next to an array counts as the array's type (NEP 50). Comparisons give bool. One operation, which reads the arrays and never
/// blocks. Throws argument_error (shapes, a number out of the type's range, an array of another device), argument_type_error. If an
/// integer is raised to a negative power, the operation fails; if the exponent is a number and not an array, the call throws.
[[nodiscard]] WEIR_EXPORT array compute(const on& where, binary_operation what, const operand& a, const operand& b);
/// @{
/// The same into an existing array, which may be one of the operands or overlap them: the results are as if everything had been computed
/// first. They are converted within the same kind of numbers or to a higher one (else argument_type_error).
WEIR_EXPORT completion compute(const on& where, binary_operation what, const operand& a, const operand& b, array& out);
inline completion compute(const on& where, binary_operation what, const operand& a, const operand& b, array&& out) {
    return compute(where, what, a, b, out);
}
/// @}
/// The same for one array.
[[nodiscard]] WEIR_EXPORT array compute(const on& where, unary_operation what, const array& x);
/// @{
/// The same for one array, into an existing array.
WEIR_EXPORT completion compute(const on& where, unary_operation what, const array& x, array& out);
inline completion compute(const on& where, unary_operation what, const array& x, array&& out) {
    return compute(where, what, x, out);
}
/// @}

/// A new array with the elements of `x` where `condition` is true (not 0), and of `y` elsewhere. Shapes, types and errors as for
/// arithmetic. Reads the arrays; never blocks.
[[nodiscard]] WEIR_EXPORT array select(const on& where, const array& condition, const operand& x, const operand& y);

/// @{
/// `compute` by name: the same rules and errors. Operators (`a + b`, `a += b`, `a < b`, `-a`, ...; see array) use the current stream of
/// the device of their first array. `a += b` changes the elements of `a`, which other arrays may share.
[[nodiscard]] inline array add(const on& where, const operand& a, const operand& b) {
    return compute(where, binary_operation::add, a, b);
}
[[nodiscard]] inline array subtract(const on& where, const operand& a, const operand& b) {
    return compute(where, binary_operation::subtract, a, b);
}
[[nodiscard]] inline array multiply(const on& where, const operand& a, const operand& b) {
    return compute(where, binary_operation::multiply, a, b);
}
[[nodiscard]] inline array divide(const on& where, const operand& a, const operand& b) {
    return compute(where, binary_operation::divide, a, b);
}
[[nodiscard]] inline array power(const on& where, const operand& a, const operand& b) {
    return compute(where, binary_operation::power, a, b);
}
/// @}

}  // namespace weir
