// A program of raw CUDA, ported: two buffers that are filled on one stream and used on another.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>
#include <weir/weir.hpp>

namespace {

const std::string source = R"(
extern "C" __global__ void scale(const float* x, float* y, float a, long long n) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x) {
        y[i] = a * x[i];
    }
}
)";

bool run() {
    using namespace weir;
    const std::int64_t n = 1 << 16;
    std::vector<float> block(static_cast<std::size_t>(n));
    float last = 0;

    const kernel scale = kernel::from_source(source, "scale");
    const stream upload(cuda());
    const stream compute(cuda());
    array in_buffers[2] = {empty(n, dtype::float32, upload), empty(n, dtype::float32, upload)};
    array out_buffers[2] = {empty(n, dtype::float32, compute), empty(n, dtype::float32, compute)};
    for (int i = 0; i < 10; ++i) {
        block.assign(block.size(), static_cast<float>(i));  // the copy takes the block as it is at the call
        array& x = in_buffers[i % 2];
        array& y = out_buffers[i % 2];
        copy_from_host(upload, x, std::as_bytes(std::span(block)));
        launch(compute, scale, {256, 256}, in<float>(x), out<float>(y), 2.0F, n);
        last = y.read<float>()[0];  // waits for this launch, and for nothing else
    }
    return last == 18;
}

}  // namespace

int main() {
    try {
        static_cast<void>(weir::cuda());
    } catch (const weir::device_error& none) {
        std::printf("skipped: %s\n", none.what());
        return 0;
    }
    return run() ? 0 : 1;
}
