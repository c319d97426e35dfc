#pragma once

namespace weir::array_kernels {

/// CUDA C++ at the start of every kernel of arrays: the element types under the names of dtype, and their conversion as in
/// convert::element. Needs no header and C++17.
extern const char* const prelude_types;
/// Follows prelude_types: the operations, as structs named after them, with the results of the host's loops.
extern const char* const prelude_operations;
/// Follows that, only for power.
extern const char* const prelude_power;
/// Follows prelude_types: how reductions combine two values.
extern const char* const prelude_reductions;
/// Follows prelude_types: Philox4x32-10, as in philox.hpp.
extern const char* const prelude_random;

}  // namespace weir::array_kernels
