// The __global__ functions of programs that nvcc compiled. Only nvcc sees the declarations, in
// include/weir/detail/cuda_launch.hpp.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "backend/capability/capabilities.hpp"
#include "backend/capability/kernels.hpp"
#include "backend/capability/libraries.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/detail/launch_shape.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/error.hpp"
#include "weir/on.hpp"
#include "weir/stream.hpp"

namespace weir::detail {

namespace capability = backend::capability;

class device_function {
public:
    const capability::kernels* in;
    capability::function_handle handle;
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

device_function load(const device& on, const capability::kernels& in, const void* symbol,
                     const runtime_lookup& runtime) {
    void* found = nullptr;
    on.state(detail::key).driver().can().libraries->run_in_context([&] {
        if (const int failed = runtime.find(&found, symbol); failed != 0) {
            throw device_error("a kernel of this program cannot be loaded on " + on.name() + ": " +
                               runtime.error_text(failed) + "; was it compiled for " + in.architecture() +
                               " (nvcc -arch=" + in.architecture() + ")?");
        }
    });
    auto* const function = static_cast<capability::function_handle>(found);
    in.load_function(function);
    const int most = in.facts_of(function).max_threads;
    return {&in, function, std::min(usual_threads, static_cast<unsigned>(std::max(most, 1)))};
}

}  // namespace

void refuse_device_lambda(const on& where) {
    const std::string own = where.stream().device().name();
    throw argument_error(
        "the body of parallel_for is a __device__ lambda, which runs on CUDA devices alone, and the stream \"" +
        std::string(where.stream().name()) + "\" is one of " + own +
        (where.stream().device().state(detail::key).stands_for_cuda() ? ", which is simulated" : "") +
        ": mark the lambda __host__ __device__");
}

const device_function& loaded_function(const device& on, const void* symbol, const runtime_lookup& runtime) {
    static auto* const mutex = new detail::mutex;  // guards `all`; lock order: before the locks of the driver
    static auto* const all = new std::map<std::pair<int, const void*>, std::unique_ptr<const device_function>>;
    const capability::kernels* const in = on.state(detail::key).driver().can().kernels;
    if (in == nullptr) {
        throw argument_error("a kernel that nvcc compiled runs on CUDA devices, and " + on.name() +
                             (on.state(detail::key).stands_for_cuda() ? " is simulated" : " is none"));
    }
    on.state(detail::key).expect_usable();
    const std::pair wanted(on.id(), symbol);
    {
        const std::lock_guard lock(*mutex);
        if (const auto found = all->find(wanted); found != all->end()) {
            return *found->second;
        }
    }
    on.state(detail::key).expect_usable();
    auto made = std::make_unique<const device_function>(load(on, *in, symbol, runtime));
    const std::lock_guard lock(*mutex);
    return *all->try_emplace(wanted, std::move(made)).first->second;
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
    what.in->launch(what.handle, shape, arguments.data(), {native_queue_handle()});
}

}  // namespace weir::detail
