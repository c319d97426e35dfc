// How operations are ordered, and what observes them: ordering, check, trace, explain, and what torch does.
#pragma once

#include "bind.hpp"

namespace weir::python {

void bind_ordering(nanobind::module_& m);
void bind_checking(nanobind::module_& m);
void bind_tracing(nanobind::module_& m);
void bind_torch_launch(nanobind::module_& m);
void bind_torch_order(nanobind::module_& m);
void bind_torch_watch(nanobind::module_& m);

/// The class weir.RaceWarning. Needs the GIL.
[[nodiscard]] PyObject* race_warning() noexcept;

}  // namespace weir::python
