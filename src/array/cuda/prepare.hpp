#pragma once

#include <span>

#include "array/cuda/kernel_set.hpp"
#include "backend/capability/kernels.hpp"

namespace weir::array_kernels {

/// Compiles the kernels of the sets and loads them, so that operations which need one of them compile and load nothing (rule K6). Sets
/// whose kernels are all there are skipped. Several threads compile; the calling thread loads, which may wait for the device. Throws
/// missing_library, device_error (with the compiler's log), out_of_memory; the sets before the failed one are loaded then.
void prepare(const backend::capability::kernels& in, std::span<const kernel_set> sets);

}  // namespace weir::array_kernels
