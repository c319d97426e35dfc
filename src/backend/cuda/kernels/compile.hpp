// Kernels that Weir itself runs on the GPU.
#pragma once

#include <span>
#include <string>

#include "backend/cuda/api/driver_api.hpp"

namespace weir::backend::cuda {

class context;

/// The kernel `name` of `source` (CUDA C++), compiled by NVRTC for the context's architecture and loaded into it. Kept for
/// the process by (context, source, name, options): compiled once, also when several threads ask for it at once; read from the
/// disk cache if it is there. May wait for the compiler and, when it loads, for the device: call it where the operation is enqueued,
/// under no lock. Throws missing_library (no NVRTC), device_error (with the compiler's log), out_of_memory.
[[nodiscard]] function_handle compiled(const context& in, const std::string& source, const char* name,
                                       std::span<const std::string> options = {});

}  // namespace weir::backend::cuda
