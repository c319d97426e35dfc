#pragma once

#include "array/walk.hpp"
#include "weir/array.hpp"

namespace weir::array_kernels {

/// Copies elements of any strides to the host: a kernel packs them into memory that both reach. `both` is a plan of packed
/// memory of the host and of the array. Blocks until they are there; nothing may be writing them. False, and nothing
/// done, if the array's device runs no kernels or there is no compiler. Throws device_error, out_of_memory.
[[nodiscard]] bool fetch(const array& of, const walk::plan& both);

}  // namespace weir::array_kernels
