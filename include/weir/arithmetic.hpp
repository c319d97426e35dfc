// Arithmetic on whole arrays, element by element. Layer: array.
#pragma once

#include <concepts>
#include <cstdint>
#include <variant>

#include "weir/array.hpp"
#include "weir/export.hpp"
#include "weir/launch.hpp"
#include "weir/scalar.hpp"

namespace weir {

/// What can be computed of two operands, element by element.
enum class binary_operation : std::uint8_t {
    add,       ///< of bool: or
    subtract,  ///< not of bool
    multiply,  ///< of bool: and
    divide,    ///< of integers: as float64
    power,     ///< of integers: an integer; a negative exponent is an error
    equal,
    not_equal,
    less,
    less_equal,
    greater,
    greater_equal,
    bitwise_and,  ///< of bool and integers, as the next two
    bitwise_or,
    bitwise_xor,
};

/// What can be computed of one.
enum class unary_operation : std::uint8_t {
    negative,  ///< not of bool
    invert,    ///< of integers: every bit; of bool: not
};

/// The element type of arithmetic between two: NumPy's promotion. Throws argument_type_error where there is none
/// (bfloat16 beside float16, and beside integers of more than 8 bits).
[[nodiscard]] WEIR_EXPORT dtype promote_types(dtype a, dtype b);

/// An operand of arithmetic: an array or a number. Refers to the array: for arguments only. Remembers the line of the
/// program that made it.
class operand {
public:
    /// @{
    /// From an array, which must outlive the call that takes the operand, or from a number.
    operand(const array& x,  // NOLINT(google-explicit-constructor): for arguments
            source_location where = source_location::current()) noexcept
        : value_(&x), where_(where) {}
    template <std::convertible_to<scalar> Number>
        requires(!std::convertible_to<Number, const array&>)
    operand(const Number& number,  // NOLINT(google-explicit-constructor): for arguments
            source_location where = source_location::current())
    noexcept : value_(scalar(number)), where_(where) {}
    /// @}

    /// Whether it is an array.
    [[nodiscard]] bool is_array() const noexcept { return value_.index() == 0; }
    /// The array, if it is one.
    [[nodiscard]] const array& of_array() const noexcept { return **std::get_if<0>(&value_); }
    /// The number, if it is one.
    [[nodiscard]] const scalar& number() const noexcept { return *std::get_if<1>(&value_); }
    /// The line of the program that made it.
    [[nodiscard]] const source_location& where() const noexcept { return where_; }

private:
    std::variant<const array*, scalar> value_;
    source_location where_;
};

/// A new array of what `what` gives for each pair of elements; shapes are broadcast, types promoted as NumPy 2 does, a
/// number beside an array counts as the array's type (NEP 50). Comparisons give bool. One operation, which reads the
/// arrays and never blocks. Throws argument_error (shapes, a number out of the type's range, an array of another device),
/// argument_type_error. Integers to the power of a negative number fail the operation, with a number as exponent already
/// the call.
[[nodiscard]] WEIR_EXPORT array compute(const on& where, binary_operation what, const operand& a, const operand& b);
/// The same into an array that there is, which may be one of the operands or overlap them: results are as if all had been
/// computed first, and converted within the same kind of numbers or to a higher one (else argument_type_error).
WEIR_EXPORT completion compute(const on& where, binary_operation what, const operand& a, const operand& b,
                               const array& out);
/// The same of one array.
[[nodiscard]] WEIR_EXPORT array compute(const on& where, unary_operation what, const array& x);
/// The same of one array, into an array that there is.
WEIR_EXPORT completion compute(const on& where, unary_operation what, const array& x, const array& out);

/// Elements of `x` where `condition` is true (not 0), else of `y`: a new array. Shapes, types and errors as for
/// arithmetic. Reads the arrays, never blocks.
[[nodiscard]] WEIR_EXPORT array select(const on& where, const array& condition, const operand& x, const operand& y);

/// @{
/// `compute` by name: the same rules and errors. Operators (`a + b`, `a += b`, `a < b`, `-a`, ...; see array) work on the
/// current stream of the device of their first array; `a += b` changes the elements of `a`, whoever else sees them.
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
