// Bodies of parallel_for as kernels, for programs that nvcc compiles. Included by launch.hpp. Layer: array.
#pragma once

#ifndef __CUDACC__
#error "weir/detail/cuda_launch.hpp is for programs that nvcc compiles"
#endif

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <span>
#include <tuple>
#include <utility>

#include "weir/launch.hpp"

namespace weir::detail {

/// A `__global__` function of the program, loaded on one device. Lives for ever.
class device_function;

/// Functions of the CUDA runtime, of which the program has its own copy: it knows the program's kernels.
struct runtime_lookup {
    int (*find)(void** function, const void* symbol);  ///< in the current context; 0 for success
    const char* (*error_text)(int error);
};
/// Loads the function, once for each device; blocks meanwhile. Throws device_error.
[[nodiscard]] WEIR_EXPORT const device_function& loaded_function(const device& on, const void* symbol,
                                                                 const runtime_lookup& runtime);
/// The driver's handle, a CUfunction.
[[nodiscard]] WEIR_EXPORT void* handle_of(const device_function& one) noexcept;
/// Puts a launch into the queue that the calling thread submits to, with one thread for each index, or with as many as a grid can have.
/// Throws device_error.
WEIR_EXPORT void put_index_space(const device_function& what, std::size_t count, std::span<void* const> arguments);

/// Each thread takes the index of its own number, and then every further one at a distance of the number of threads.
template <class F, class... Data>
__global__ void index_space_kernel(std::size_t begin, std::size_t count, F body, Data... data) {
    const std::size_t threads = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += threads) {
        if constexpr (std::is_invocable_v<F&, std::size_t, Data&...>) {
            body(begin + i, data...);
        } else {
            body(begin + i);
        }
    }
}

[[nodiscard]] inline const device_function& function_of(const device& on, const void* symbol) {
    return loaded_function(
        on, symbol,
        {[](void** function, const void* which) {
             return static_cast<int>(cudaGetFuncBySymbol(reinterpret_cast<cudaFunction_t*>(function), which));
         },
         [](int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); }});
}

/// The kernel that runs F on this device.
template <class F, class... Data>
[[nodiscard]] const device_function& index_space_function(const device& on) {
    static std::array<std::atomic<const device_function*>, 16> known{};
    const auto symbol = reinterpret_cast<const void*>(&index_space_kernel<F, Data...>);
    const auto id = static_cast<std::size_t>(on.id());
    if (id >= known.size()) {
        return function_of(on, symbol);
    }
    const device_function* found = known[id].load(std::memory_order_acquire);
    if (found == nullptr) {
        found = &function_of(on, symbol);
        known[id].store(found, std::memory_order_release);
    }
    return *found;
}

/// A launch of the kernel that runs F, which gets `data`.
template <class F, class... Given>
[[nodiscard]] auto index_space_launch(const device& on, range over, F body, const std::tuple<Given...>& data) {
    const std::size_t count = over.end > over.begin ? over.end - over.begin : 0;
    const device_function* const function = &index_space_function<F, Given...>(on);
    return [function, values = std::tuple_cat(std::tuple(over.begin, count, std::move(body)), data)]() mutable {
        std::apply(
            [&](auto&... value) {
                const std::array<void*, sizeof...(value)> addresses{static_cast<void*>(&value)...};
                put_index_space(*function, *static_cast<std::size_t*>(addresses[1]), addresses);
            },
            values);
    };
}

template <class F, class... T, class... Data>
completion parallel_for_on_cuda(const on& where, range over, F body, const access_argument<T, Data>&... arguments) {
    return submit_work(where, runtime::work_kind::device,
                       native_task{index_space_launch(where.stream().device(), over, std::move(body),
                                                      given_data(arguments.data()...))},
                       arguments...);
}

}  // namespace weir::detail
