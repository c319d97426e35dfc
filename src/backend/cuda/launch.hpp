// How a kernel is put into a stream: in a header, since every launch comes by here.
#pragma once

#include "backend/cuda/context.hpp"
#include "backend/cuda/driver_api.hpp"
#include "weir/detail/launch_shape.hpp"
#include "weir/detail/task.hpp"

namespace weir::backend::cuda {

/// Puts a launch into a queue; the context need be current only where that is a default stream. `arguments` are addresses of the
/// values, which are copied. Throws device_error.
[[gnu::always_inline]] inline void launch(const context& in, function_handle what, const detail::launch_shape& as,
                                          void* const* arguments, detail::queue_handle into) {
    const auto call = [what, arguments, into, of = &in, shape = &as] {
        return of->api().launch(what, shape->grid[0], shape->grid[1], shape->grid[2], shape->block[0], shape->block[1],
                                shape->block[2], shape->shared_bytes, static_cast<stream_handle>(into.value),
                                const_cast<void**>(arguments), nullptr);
    };
    in.expect(by_handle(in, call), "cuLaunchKernel");
}

}  // namespace weir::backend::cuda
