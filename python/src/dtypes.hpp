// Element types, as Python names them.
#pragma once

#include "bind.hpp"

#include "weir/dtype.hpp"

namespace weir::python {

/// The element type that an argument names: "float32", numpy.float32, numpy.dtype("float32"), ml_dtypes.bfloat16, or bool,
/// int, float, complex. Throws argument_type_error.
[[nodiscard]] dtype dtype_from(nanobind::handle argument);

/// The same, as Python's users know it: a numpy.dtype where NumPy is installed, of ml_dtypes where NumPy
/// has no such type; else the name.
[[nodiscard]] nanobind::object python_dtype(dtype type);

}  // namespace weir::python
