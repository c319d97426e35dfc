#pragma once

#include "array/walk.hpp"
#include "weir/array.hpp"

namespace weir::array_kernels {

/// Copies elements of any strides to the host: a kernel packs them into memory that both reach. `both` is a plan of packed
/// host memory and of the array. Blocks until the copy is complete; nothing may be writing the elements. Returns false, and does
/// nothing, if the array's device runs no kernels or there is no compiler. Throws device_error, out_of_memory.
[[nodiscard]] bool fetch(const array& of, const walk::plan& both);

}  // namespace weir::array_kernels
