// Arguments of kernels that Python programs pass.
#pragma once

#include "bind.hpp"

#include <cstddef>
#include <vector>

#include "weir/kernel.hpp"

namespace weir::python {

/// The argument that an object is: an array, also one wrapped in In, Out or InOut; or a number of Python or NumPy. The launch checks
/// it against the signature. Refers to the array of the object; an array of another package is shared, and put into `imported`,
/// which the caller keeps until the launch. Throws argument_type_error, argument_error (a number beyond
/// all types), which name the parameter at `position`.
[[nodiscard]] kernel_argument argument_from(nb::handle given, const kernel& of, std::size_t position,
                                            std::vector<nb::object>& imported);

/// A structure: a record of NumPy, a structure of ctypes, bytes, or whatever else has a buffer. Refers to a copy of its bytes, which is put
/// into `kept`. Throws argument_type_error, which names the parameter at `position`.
[[nodiscard]] kernel_argument structure_from(nb::handle given, const kernel& of, std::size_t position,
                                             std::vector<nb::object>& kept);

}  // namespace weir::python
