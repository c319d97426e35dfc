#pragma once

namespace weir::array_kernels {

/// CUDA C++ that every kernel of arrays begins with: the element types under the names of dtype, and their conversion as
/// convert::element has it. Needs no header and C++17.
extern const char* const prelude_types;
/// After that: the operations, as structs named after them, with the results of the host's loops.
extern const char* const prelude_operations;
/// After that, for power alone.
extern const char* const prelude_power;
/// After the types: what reductions do with two values.
extern const char* const prelude_reductions;
/// After the types: Philox4x32-10, as philox.hpp has it.
extern const char* const prelude_random;

}  // namespace weir::array_kernels
