// How a host task sees the arrays that it is passed.
#pragma once

#include "bind.hpp"
#include "weir/array.hpp"

namespace weir::python {

void bind_task_views(nanobind::module_& m);

/// Whether a host task gets a NumPy array for it.
[[nodiscard]] bool is_the_hosts(const array& x);

/// Throws missing_library if the array would be a NumPy array in the task, and NumPy is not there.
void expect_task_view(nanobind::handle of);

/// A NumPy array over the memory of an array of the CPU, any other array as it is. Waits for nothing: the task's own access
/// orders it. Keeps the array alive. Throws nb::python_error.
[[nodiscard]] nanobind::object task_view(nanobind::handle of, bool writable);

}  // namespace weir::python
