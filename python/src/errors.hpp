// The exception tree (rule X10).
#pragma once

#include "bind.hpp"

namespace weir::python {

/// Adds Error and its subclasses to the module, and has what Weir throws raised as such.
void bind_errors(nanobind::module_& m);

}  // namespace weir::python
