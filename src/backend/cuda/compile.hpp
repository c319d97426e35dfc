// Kernels that Weir itself runs on the GPU.
#pragma once

#include <span>
#include <string>

#include "backend/cuda/context.hpp"
#include "backend/cuda/driver_api.hpp"
#include "backend/native.hpp"
#include "weir/detail/launch_shape.hpp"

namespace weir::backend::cuda {

/// The kernel `name` of `source` (CUDA C++), compiled by NVRTC for the context's architecture and loaded into it. Kept for
/// the process by (context, source, name, options): compiled once, also when several threads ask; from the disk cache if
/// it is there. May wait for the compiler and, when it loads, for the device: call it where the operation is enqueued,
/// under no lock. Throws missing_library (no NVRTC), device_error (with the compiler's log), out_of_memory.
[[nodiscard]] function_handle compiled(const context& in, const std::string& source, const char* name,
                                       std::span<const std::string> options = {});

using detail::launch_shape;

/// Puts a launch into submitting_to::current(). Inside a native task; the context current only where that is a default stream.
/// `arguments` are addresses of the values, which are copied. Throws device_error.
[[gnu::always_inline]] inline void launch(const context& in, function_handle what, const launch_shape& as,
                                          std::span<void* const> arguments) {
    const auto queue = static_cast<stream_handle>(submitting_to::current());
    const auto call = [&] {
        return in.api().launch(what, as.grid[0], as.grid[1], as.grid[2], as.block[0], as.block[1], as.block[2],
                               as.shared_bytes, queue, const_cast<void**>(arguments.data()), nullptr);
    };
    in.expect(by_handle(in, call), "cuLaunchKernel");
}

}  // namespace weir::backend::cuda
