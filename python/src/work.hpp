// Bindings of the work that Python programs put into streams: tasks, kernels, library calls; and of memory, tests and captures.
#pragma once

#include "bind.hpp"

namespace weir::python {

void bind_testing(nanobind::module_& m);
void bind_accesses(nanobind::module_& m);
void bind_tokens(nanobind::module_& m);
void bind_host_tasks(nanobind::module_& m);
void bind_kernels(nanobind::module_& m);
void bind_body_kernels(nanobind::module_& m);
void bind_elementwise(nanobind::module_& m);
void bind_reduction_kernels(nanobind::module_& m);
void bind_parallel(nanobind::module_& m);
void bind_memory(nanobind::module_& m);
void bind_fft(nanobind::module_& m);
void bind_linalg(nanobind::module_& m);
void bind_sparse(nanobind::module_& m);
void bind_captures(nanobind::module_& m);

}  // namespace weir::python
