// Memory of the driver's pool on two streams of a CUDA device: arrays are dropped while they are in use, and their memory is
// used again. For NVIDIA's sanitizer, which checks that each use is ordered behind its allocation and before its end:
//
//   compute-sanitizer --tool memcheck --track-stream-ordered-races all --report-api-errors no --error-exitcode 9
//       gpu-stream_ordered [early]
//
// Without `early` the sanitizer must find nothing, and the program exits with 0. With `early`, the control, memory is given back on
// another stream without any order, by hand: the sanitizer must find that, and the exit status is 9. Exit status without the sanitizer:
// 0: the results are right; 1: they are not; 2: no CUDA device. `early` does not check results.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string_view>
#include <utility>

#include "backend/cuda/device/context.hpp"
#include "backend/cuda/device/driver.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/weir.hpp"

namespace {

constexpr std::int64_t count = std::int64_t{1} << 20;
constexpr int rounds = 20;

const weir::kernel& add_one() {
    // Takes some time, so that it is still running when the program goes on.
    static const weir::kernel one = weir::kernel::from_source(R"(
extern "C" __global__ void add_one(const double* x, double* y, long long n) {
    for (int repeat = 0; repeat < 64; ++repeat) {
        for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x) {
            y[i] = x[i] + 1;
        }
    }
}
)",
                                                              "add_one");
    return one;
}

void step(const weir::stream& on, weir::array& to, const weir::array& from) {
    weir::launch(on, add_one(), {64, 256}, weir::in<double>(from), weir::out<double>(to), count);
}

/// A chain over two streams, each link of which is dropped as soon as the next one reads it.
bool drop_in_use() {
    const weir::stream first(weir::cuda());
    const weir::stream second(weir::cuda());
    const weir::memory::use scope(weir::memory::driver_pool());
    weir::array x = weir::full(count, 0, weir::dtype::float64, first);
    for (int i = 0; i < rounds; ++i) {
        const weir::stream& on = i % 2 == 0 ? first : second;
        weir::array y = weir::empty(count, weir::dtype::float64, on);
        step(on, y, x);
        x = std::move(y);  // what was read is dropped while it is read
    }
    const weir::host_view<const double> seen = x.read<double>();
    return std::all_of(seen.begin(), seen.end(), [](double value) { return value == rounds; });
}

/// A common mistake: allocated and used on one stream, freed on another one at once.
void free_early() {
    namespace gpu = weir::backend::cuda;
    const weir::stream first(weir::cuda());
    const weir::stream second(weir::cuda());
    gpu::device_context& in = gpu::context_of(weir::cuda().state(weir::detail::key).driver());
    const weir::array x = weir::full(count, 0, weir::dtype::float64, first);
    // Once a stream's handle is given out, the stream contains everything that was enqueued.
    auto* const a = static_cast<gpu::stream_handle>(first.handle());
    auto* const b = static_cast<gpu::stream_handle>(second.handle());
    const gpu::in_context scope(in);
    for (int i = 0; i < rounds; ++i) {
        gpu::device_pointer memory = 0;
        in.expect(in.api().memory_alloc_async(&memory, count * sizeof(double), a), "cuMemAllocAsync");
        weir::array y(weir::buffer::wrap(reinterpret_cast<void*>(memory), count * sizeof(double), weir::cuda(), [] {}),
                      weir::dtype::float64, count);
        step(first, y, x);
        in.expect(in.api().memory_free_async(memory, b), "cuMemFreeAsync");
    }
    weir::cuda().synchronize();
}

}  // namespace

int main(int argc, char** argv) {
    try {
        static_cast<void>(weir::cuda());
    } catch (const std::exception& why) {
        std::fprintf(stderr, "%s\n", why.what());
        return 2;
    }
    try {
        if (argc > 1 && std::string_view(argv[1]) == "early") {
            free_early();
            std::puts("freed early on purpose");
            return 0;
        }
        const bool right = drop_in_use();
        std::puts(right ? "right" : "wrong");
        return right ? 0 : 1;
    } catch (const std::exception& why) {
        std::fprintf(stderr, "%s\n", why.what());
        return 1;
    }
}
