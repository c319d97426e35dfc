// What Python programs pass to operations as operands, and what they say of them.
#pragma once

#include "bind.hpp"

#include <cstdint>
#include <optional>
#include <vector>

#include "weir/array.hpp"
#include "weir/completion.hpp"
#include "weir/detail/submission.hpp"
#include "weir/source_location.hpp"

namespace weir::python {

/// How an operation uses an array.
enum class operand_use : std::uint8_t {
    in,     ///< it is only read
    out,    ///< every element is written and none is read before
    inout,  ///< it is read and written
};

/// An array or a token with its use: In(x), Out(x), InOut(x).
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
/// The same of an object that is an array or a token.
[[nodiscard]] runtime::access_request access_of(nb::handle operand, operand_use use);

/// What `reads=` or `writes=`, which is `name`, lists: one array or token, or any number of them, arrays also of other packages.
/// Throws argument_type_error.
[[nodiscard]] std::vector<nb::object> listed_operands(nb::handle list, const char* name, const source_location& where);

/// Whether the program can see how long the object itself lives, and not only the memory: it is no plain array, or has weak references.
[[nodiscard]] bool is_watched(nb::handle of) noexcept;

/// Whether the object itself is in the list.
[[nodiscard]] bool contains(const std::vector<nb::object>& list, nb::handle one);
/// How an operation uses an array that is neither wrapped in In, Out or InOut, nor listed: it reads and writes it.
[[nodiscard]] operand_use use_of(nb::handle x, const std::vector<nb::object>& reads,
                                 const std::vector<nb::object>& writes);

/// What `after=` names: an Event, or any number of them. Throws argument_type_error, state_error (a closed event).
[[nodiscard]] std::vector<completion> completions_from(nb::handle after);

/// Adds the accesses of what `reads=` and `writes=` list (tokens, arrays), and returns the listed objects, which must be kept until the
/// operation is enqueued. Throws as access_of.
[[nodiscard]] std::vector<nb::object> accesses_besides(nb::handle reads, nb::handle writes,
                                                       std::vector<runtime::access_request>& to,
                                                       const source_location& where);

}  // namespace weir::python
