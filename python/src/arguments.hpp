// The arguments of calls, as Python gives them. Nanobind refuses an object that it cannot convert by listing the signatures. So the
// bindings take objects, None included, and convert them here, where each refusal says what was given and what is wanted.
#pragma once

#include "bind.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace weir::python {

/// "priority is 'x': pass ..." as an error of types.
[[noreturn]] void refuse_type(nb::handle argument, const char* name, const std::string& wanted);

/// A text. Throws argument_type_error, which says what `name` is to be.
[[nodiscard]] std::string_view text_from(nb::handle argument, const char* name, const char* wanted);
/// Texts from an iterable of texts. A single text is refused, though it can be iterated over. Throws argument_type_error.
[[nodiscard]] std::vector<std::string> texts_from(nb::handle argument, const char* name, const char* wanted);

/// An integer, or what has __index__. Throws argument_type_error; argument_error outside of the range.
[[nodiscard]] std::int64_t integer_from(nb::handle argument, const char* name,
                                        std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                                        std::int64_t most = std::numeric_limits<std::int64_t>::max());
/// The same, within what an int holds.
[[nodiscard]] inline int int_from(nb::handle argument, const char* name) {
    return static_cast<int>(
        integer_from(argument, name, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()));
}
/// An integer from 0 to 2**64 - 1. Throws argument_type_error, which says what is `wanted`; argument_error.
[[nodiscard]] std::uint64_t unsigned_from(nb::handle argument, const char* name, const char* wanted = "an integer");
/// A number. Throws argument_type_error.
[[nodiscard]] double number_from(nb::handle argument, const char* name);

/// Neither True nor False, but perhaps NumPy's. Throws argument_type_error.
[[nodiscard]] bool flag_from_other(nb::handle argument, const char* name, const char* wanted);
/// True or False. Throws argument_type_error, which says what is `wanted`.
[[nodiscard]] inline bool flag_from(nb::handle argument, const char* name, const char* wanted = "True or False") {
    return argument.ptr() == Py_True || (argument.ptr() != Py_False && flag_from_other(argument, name, wanted));
}

}  // namespace weir::python
