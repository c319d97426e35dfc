// How a kernel is put into a stream: in a header, since every launch comes by here.
#pragma once

#include "backend/cuda/context.hpp"
#include "backend/cuda/driver_api.hpp"
#include "weir/detail/rare.hpp"
#include "weir/detail/task.hpp"

namespace weir::backend::cuda {

/// Where the driver has no cuLaunchKernelEx.
[[gnu::cold, gnu::noinline]] inline void launch_by_parts(const context& in, function_handle what,
                                                         const launch_shape& as, void* const* arguments) {
    const auto call = [&] {
        return in.api().launch(what, as.grid[0], as.grid[1], as.grid[2], as.block[0], as.block[1], as.block[2],
                               as.shared_bytes, static_cast<stream_handle>(as.stream), const_cast<void**>(arguments),
                               nullptr);
    };
    in.expect(by_handle(in, call), "cuLaunchKernel");
}

/// Puts a launch into a queue, and says so in `as`; the context need be current only where that is a default stream. `arguments`
/// are addresses of the values, which are copied. Throws device_error.
[[gnu::always_inline]] inline void launch(const context& in, function_handle what, launch_shape& as,
                                          void* const* arguments, detail::queue_handle into) {
    as.stream = into.value;
    if (in.api().launch_as == nullptr) [[unlikely]] {
        detail::rare();
        launch_by_parts(in, what, as, arguments);
        return;
    }
    const auto call = [&in, what, &as, arguments] {
        return in.api().launch_as(&as, what, const_cast<void**>(arguments), nullptr);
    };
    in.expect(by_handle(in, call), "cuLaunchKernelEx");
}

}  // namespace weir::backend::cuda
