// What stands beside an array: numbers of Python, scalars and arrays of NumPy.
#pragma once

#include "bind.hpp"

#include <optional>
#include <utility>
#include <variant>

#include "devices.hpp"
#include "weir/arithmetic.hpp"
#include "weir/array.hpp"
#include "weir/scalar.hpp"

namespace weir::python {

/// A number of Python's, which has no element type of its own; nothing if `argument` is none. NumPy's scalars are none. An integer
/// that does not fit any element type becomes a real number if `rounds`, else it is an argument_error.
[[nodiscard]] std::optional<scalar> number_from(nanobind::handle argument, bool rounds = false);
/// Whether elements of the type are real or complex numbers, to which any integer of Python's is rounded.
[[nodiscard]] constexpr bool is_inexact(dtype type) noexcept { return is_real(type) || is_complex(type); }

/// A number as Python has it.
[[nodiscard]] nanobind::object python_number(const scalar& number);

/// One operand of an operation, with a share in what it refers to.
class array_operand {
public:
    /// No operand.
    array_operand() = default;
    /// An array of Weir's, which outlives it.
    explicit array_operand(const array& x) noexcept : value_(&x) {}
    explicit array_operand(array&& x) noexcept : value_(std::move(x)) {}
    explicit array_operand(const scalar& number) noexcept : value_(number) {}

    /// Whether it is one.
    explicit operator bool() const noexcept { return value_.index() != 0; }
    /// Whether it is an array.
    [[nodiscard]] bool is_array() const noexcept { return value_.index() == 1 || value_.index() == 2; }
    [[nodiscard]] const array& of_array() const noexcept {
        return value_.index() == 1 ? **std::get_if<1>(&value_) : *std::get_if<2>(&value_);
    }
    [[nodiscard]] const scalar& number() const noexcept { return *std::get_if<3>(&value_); }
    /// For the call that takes it.
    [[nodiscard]] operand at(const source_location& where) const noexcept {
        return is_array() ? operand(of_array(), where) : operand(number(), where);
    }

private:
    std::variant<std::monostate, const array*, array, scalar> value_;
};

/// The operand that `argument` is beside the array `x`: an array of Weir's, a number of Python's (which takes the type of
/// `x` as far as it can), a scalar or an array of NumPy's (which keep their types, and are copied to the device of `on`).
/// None for anything else, which may know what to do with arrays. `rounds`: see number_from. Throws argument_type_error
/// for lists.
[[nodiscard]] array_operand operand_from(nanobind::handle argument, const array& x, const stream& on,
                                         const source_location& where, bool rounds = false);

/// The stream that operators on `x` use: the current one of its device.
[[nodiscard]] inline stream stream_of(const array& x) { return current_in_context(x.device()); }

void bind_operators(nanobind::class_<array>& cls);
void bind_universal_functions(nanobind::class_<array>& cls);

/// The result of one of NumPy's functions or one of Python's operators: a new array, or `out` if that is an array. NotImplemented
/// if the type of one of the operands is not known here.
[[nodiscard]] nanobind::object computed(binary_operation what, nanobind::handle a, nanobind::handle b,
                                        nanobind::handle out = {});
[[nodiscard]] nanobind::object computed(unary_operation what, nanobind::handle x, nanobind::handle out = {});
/// The same for the product of matrices: operator @, numpy.matmul.
[[nodiscard]] nanobind::object multiplied(nanobind::handle a, nanobind::handle b, nanobind::handle out = {});

}  // namespace weir::python
