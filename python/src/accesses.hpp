// What Python programs pass to operations as operands, and what they say of them.
#pragma once

#include "bind.hpp"

#include <cstdint>
#include <optional>
#include <vector>

#include "weir/array.hpp"
#include "weir/completion.hpp"
#include "weir/detail/submission.hpp"

namespace weir::python {

/// How an operation uses an array.
enum class operand_use : std::uint8_t {
    in,     ///< it is only read
    out,    ///< every element is written and none is read before
    inout,  ///< it is read and written
};

/// An array with its use: In(x), Out(x), InOut(x).
struct declared_use {
    nb::object of;
    operand_use use;
};
struct py_in : declared_use {};
struct py_out : declared_use {};
struct py_inout : declared_use {};

/// "In", "Out" or "InOut".
[[nodiscard]] const char* name_of(operand_use use) noexcept;

/// In(x), Out(x) or InOut(x).
[[nodiscard]] nb::object operand_object(nb::handle of, operand_use use);

/// The array that `x` is. Throws argument_type_error, which says what `what` is to be.
[[nodiscard]] const array& array_from(nb::handle x, const char* what);

/// The access of an operation that uses `x` so. Throws argument_error if it is to be written and elements share memory.
[[nodiscard]] runtime::access_request access_of(const array& x, operand_use use);

/// What `after=` names: an Event, or any number of them. Throws argument_type_error, state_error (a closed event).
[[nodiscard]] std::vector<completion> completions_from(nb::handle after);

}  // namespace weir::python
