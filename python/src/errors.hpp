// The exception tree (rule X10).
#pragma once

#include "bind.hpp"

#include "weir/error.hpp"

namespace weir::python {

/// An index that an array has not: IndexError as well, by which Python's loops end.
class index_error : public argument_error {
public:
    using argument_error::argument_error;
};

/// The package needs a copy, and is not to make one.
class copy_error : public error {
public:
    using error::error;
};

/// Memory cannot be exchanged in the way that was asked for.
class exchange_error : public error {
public:
    using error::error;
};

/// Has Python raise what is being handled, where no exception may leave: in functions that the interpreter itself calls.
/// Needs the GIL, in a catch block.
void raise_handled() noexcept;

/// Adds Error and its subclasses to the module, and has what Weir throws raised as such.
void bind_errors(nanobind::module_& m);

}  // namespace weir::python
