// Structures as arguments, blocks that wait for each other, and blocks in clusters.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <weir/weir.hpp>

namespace {

struct window {
    double from;
    double to;
};

const std::string source = R"(
struct window { double from, to; };

// Each thread adds up a part; when all blocks have done so, each block knows the whole, and scales its part.
extern "C" __global__ void normalize(double* x, double* sum, unsigned* arrived, window in, long long n) {
    const long long first = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    const long long step = (long long)gridDim.x * blockDim.x;
    double part = 0;
    for (long long i = first; i < n; i += step) {
        x[i] = x[i] < in.from ? in.from : x[i] > in.to ? in.to : x[i];
        part += x[i];
    }
    atomicAdd(sum, part);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1u);
        while (atomicAdd(arrived, 0u) < gridDim.x) {
        }
    }
    __syncthreads();
    const double all = atomicAdd(sum, 0.0);
    for (long long i = first; i < n; i += step) {
        x[i] /= all;
    }
}

// A block of the cluster asks for its place in it.
extern "C" __global__ void places(unsigned* y) {
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(y[blockIdx.x]));
}
)";

bool structures_and_cooperation() {
    using namespace weir;
    const kernel normalize = kernel::from_source(source, "normalize")
                                 .with_signature(
                                     "inout double* x, inout double* sum, inout uint32* arrived, "
                                     "struct window in, int64 n");
    const stream s(cuda());
    const long long n = 100'000;
    array x = full(n, 5, dtype::float64, s);
    array sum = zeros(1, dtype::float64, s);
    array arrived = zeros(1, dtype::uint32, s);

    // All blocks run at the same time: no more of them than the device has room for.
    const std::size_t blocks = std::min<std::size_t>(normalize.max_cooperative_blocks(256), 64);
    launch(s, normalize, {.grid = blocks, .block = 256, .cooperative = true}, inout(x.view<double>()),
           inout(sum.view<double>()), inout(arrived.view<std::uint32_t>()), window{0, 2}, n);
    return std::abs(x.read<double>()[0] * static_cast<double>(n) - 1) < 1e-9;
}

bool clusters() {
    using namespace weir;
    const kernel places = kernel::from_source(source, "places");
    const stream s(cuda());
    array y = empty(8, dtype::uint32, s);
    try {
        launch(s, places, {.grid = 8, .block = 32, .cluster = 4}, out(y.view<std::uint32_t>()));
    } catch (const argument_error& none) {
        std::printf("no clusters: %s\n", none.what());
        return true;
    }
    const auto place = y.read<std::uint32_t>();
    return place[3] == 3 && place[4] == 0;  // two clusters of four blocks
}

}  // namespace

int main() {
    try {
        static_cast<void>(weir::cuda());
    } catch (const weir::device_error& none) {
        std::printf("skipped: %s\n", none.what());
        return 0;
    }
    return structures_and_cooperation() && clusters() ? 0 : 1;
}
