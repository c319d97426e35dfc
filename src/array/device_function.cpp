// The __global__ functions of programs that nvcc compiled. What declares this is for nvcc alone: include/weir/detail/
// cuda_launch.hpp.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "backend/cuda/driver.hpp"
#include "backend/cuda/launch.hpp"
#include "backend/cuda/loaded_module.hpp"
#include "runtime/device_state.hpp"
#include "weir/detail/launch_shape.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"

namespace weir::detail {

namespace gpu = backend::cuda;

class device_function {
public:
    const gpu::context* in;
    gpu::function_handle handle;
    unsigned threads;  ///< of a block
};

struct runtime_lookup {
    int (*find)(void** function, const void* symbol);
    const char* (*error_text)(int error);
};

[[noreturn]] WEIR_EXPORT void refuse_device_lambda(const on& where);
WEIR_EXPORT const device_function& loaded_function(const device& on, const void* symbol, const runtime_lookup& runtime);
WEIR_EXPORT void* handle_of(const device_function& one) noexcept;
WEIR_EXPORT void put_index_space(const device_function& what, std::size_t count, std::span<void* const> arguments);

namespace {

constexpr unsigned usual_threads = 256;

device_function load(const gpu::context& in, const void* symbol, const runtime_lookup& runtime) {
    const gpu::in_relaxed_context scope(in);
    void* found = nullptr;
    if (const int failed = runtime.find(&found, symbol); failed != 0) {
        throw device_error("a kernel of this program cannot be loaded on cuda:" + std::to_string(in.number()) + ": " +
                           runtime.error_text(failed) + "; was it compiled for sm_" + in.architecture() +
                           " (nvcc -arch=sm_" + in.architecture() + ")?");
    }
    auto* const function = static_cast<gpu::function_handle>(found);
    int most = 0;
    gpu::load_function(in, function);
    in.expect(in.api().function_get_attribute(&most, gpu::function_attribute::max_threads_per_block, function),
              "cuFuncGetAttribute");
    return {&in, function, std::min(usual_threads, static_cast<unsigned>(std::max(most, 1)))};
}

}  // namespace

void refuse_device_lambda(const on& where) {
    const std::string own = where.stream().device().name();
    throw argument_error(
        "the body of parallel_for is a __device__ lambda, which runs on CUDA devices alone, and the stream \"" +
        std::string(where.stream().name()) + "\" is one of " + own +
        (where.stream().device().state().stands_for_cuda() ? ", which is simulated" : "") +
        ": mark the lambda __host__ __device__");
}

const device_function& loaded_function(const device& on, const void* symbol, const runtime_lookup& runtime) {
    static auto* const mutex = new detail::mutex;  // guards `all`; before the driver's own
    static auto* const all = new std::map<std::pair<int, const void*>, std::unique_ptr<const device_function>>;
    if (on.kind() != device_kind::cuda) {
        throw argument_error("a kernel that nvcc compiled runs on CUDA devices, and " + on.name() +
                             (on.state().stands_for_cuda() ? " is simulated" : " is none"));
    }
    on.state().expect_usable();
    const std::pair key(on.id(), symbol);
    {
        const std::lock_guard lock(*mutex);
        if (const auto found = all->find(key); found != all->end()) {
            return *found->second;
        }
    }
    on.state().expect_usable();
    auto made = std::make_unique<const device_function>(load(gpu::context_of(on.state().driver()), symbol, runtime));
    const std::lock_guard lock(*mutex);
    return *all->try_emplace(key, std::move(made)).first->second;
}

void* handle_of(const device_function& one) noexcept { return one.handle; }

void put_index_space(const device_function& what, std::size_t count, std::span<void* const> arguments) {
    if (count == 0) {
        return;
    }
    constexpr std::size_t most_blocks = std::numeric_limits<int>::max();
    const std::size_t blocks = std::min((count - 1) / what.threads + 1, most_blocks);
    launch_shape shape;
    shape.grid[0] = static_cast<unsigned>(blocks);
    shape.block[0] = what.threads;
    gpu::launch(*what.in, what.handle, shape, arguments.data(), {native_queue_handle()});
}

}  // namespace weir::detail
