#pragma once

namespace weir::elements {

/// Follows array_kernels::prelude_types: the functions that bodies may call, under the same names on the CPU and on CUDA devices.
extern const char* const prelude_host_functions;
extern const char* const prelude_cuda_functions;
/// Follows these: complex arithmetic, min and max, and how results are assigned.
extern const char* const prelude_common;

}  // namespace weir::elements
