// How a kernel is put into a stream: in a header, since every launch comes by here.
#pragma once

#include <span>

#include "backend/cuda/context.hpp"
#include "backend/cuda/driver_api.hpp"
#include "backend/native.hpp"
#include "weir/detail/launch_shape.hpp"

namespace weir::backend::cuda {

/// Puts a launch into submitting_to::current(). Inside a native task; the context current only where that is a default stream.
/// `arguments` are addresses of the values, which are copied. Throws device_error.
[[gnu::always_inline]] inline void launch(const context& in, function_handle what, const detail::launch_shape& as,
                                          std::span<void* const> arguments) {
    const auto queue = static_cast<stream_handle>(submitting_to::current());
    const auto call = [&] {
        return in.api().launch(what, as.grid[0], as.grid[1], as.grid[2], as.block[0], as.block[1], as.block[2],
                               as.shared_bytes, queue, const_cast<void**>(arguments.data()), nullptr);
    };
    in.expect(by_handle(in, call), "cuLaunchKernel");
}

}  // namespace weir::backend::cuda
