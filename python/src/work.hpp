// Work that Python programs put into streams, and what stands around it.
#pragma once

#include "bind.hpp"

namespace weir::python {

void bind_testing(nanobind::module_& m);
void bind_accesses(nanobind::module_& m);
void bind_host_tasks(nanobind::module_& m);
void bind_kernels(nanobind::module_& m);
void bind_parallel(nanobind::module_& m);
void bind_memory(nanobind::module_& m);
void bind_fft(nanobind::module_& m);
void bind_captures(nanobind::module_& m);

}  // namespace weir::python
