// Puts a kernel into a stream. A separate source file, so that it is compiled together with the others on the path of every launch.
#include <array>

#include "backend/cuda/api/driver_api.hpp"
#include "backend/cuda/device/context.hpp"
#include "backend/cuda/kernels/device_kernels.hpp"
#include "weir/detail/rare.hpp"

namespace weir::backend::cuda {

namespace {

/// Where the driver has no cuLaunchKernelEx.
[[gnu::cold, gnu::noinline]] void launch_by_parts(const context& in, function_handle what, const launch_shape& as,
                                                  void* const* arguments) {
    const auto call = [&] {
        return in.api().launch(what, as.grid[0], as.grid[1], as.grid[2], as.block[0], as.block[1], as.block[2],
                               as.shared_bytes, static_cast<stream_handle>(as.stream), const_cast<void**>(arguments),
                               nullptr);
    };
    in.expect(by_handle(in, call), "cuLaunchKernel");
}

/// In clusters, or cooperative. The driver has copied the attributes when its call returns.
[[gnu::cold, gnu::noinline]] void launch_specially(const context& in, function_handle what, launch_shape& as,
                                                   void* const* arguments) {
    std::array<launch_attribute, 2> all;
    unsigned count = 0;
    if (const std::uint32_t blocks = as.special & ~launch_shape::cooperative_bit; blocks != 0) {
        launch_attribute& one = all[count++];
        one.id = launch_attribute::cluster_dimension;
        one.value = {blocks & 0xffU, blocks >> 8U & 0xffU, blocks >> 16U};
    }
    if ((as.special & launch_shape::cooperative_bit) != 0) {
        launch_attribute& one = all[count++];
        one.id = launch_attribute::cooperative;
        one.value[0] = 1;
    }
    as.attributes = all.data();
    as.attribute_count = count;
    const auto call = [&] { return in.api().launch_as(&as, what, const_cast<void**>(arguments), nullptr); };
    const result answer = by_handle(in, call);
    as.attributes = nullptr;
    as.attribute_count = 0;
    in.expect(answer, "cuLaunchKernelEx");
}

}  // namespace

/// The context need be current only if the queue is a default stream.
[[gnu::hot]] void device_kernels::launch(function_handle what, detail::launch_shape& as, void* const* arguments,
                                         detail::queue_handle into) const {
    const context& in = *in_;
    as.stream = into.value;
    if (in.api().launch_as == nullptr) [[unlikely]] {
        detail::cold_path();
        launch_by_parts(in, what, as, arguments);
        return;
    }
    if (as.special != 0) [[unlikely]] {
        detail::cold_path();
        launch_specially(in, what, as, arguments);
        return;
    }
    const auto call = [&in, what, &as, arguments] {
        return in.api().launch_as(&as, what, const_cast<void**>(arguments), nullptr);
    };
    in.expect(by_handle(in, call), "cuLaunchKernelEx");
}

}  // namespace weir::backend::cuda
