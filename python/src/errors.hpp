// The exception tree (rule X10).
#pragma once

#include "bind.hpp"

#include <string>

#include "weir/error.hpp"

namespace weir::python {

/// An index that an array does not have: IndexError as well, by which Python's loops end.
class index_error : public argument_error {
public:
    using argument_error::argument_error;
};

/// The exception, as Python code sees it: what C code raised may be its arguments alone until then. Needs the GIL.
[[nodiscard]] nanobind::object exception_in(const nanobind::python_error& raised);

/// Raises ExchangeError for what code of another package raised, which becomes its cause. Needs the GIL.
[[noreturn]] void raise_exchange_error(const std::string& message, const nanobind::python_error& cause);
/// Whether it is an exception of Weir's own.
[[nodiscard]] bool is_of_weir(const nanobind::python_error& raised) noexcept;

/// Sets the exception that is being handled as Python's error, in functions that the interpreter itself calls, which no exception may
/// leave. Needs the GIL, in a catch block.
void raise_handled() noexcept;

/// Adds Error and its subclasses to the module, and translates what Weir throws into them.
void bind_errors(nanobind::module_& m);

}  // namespace weir::python
