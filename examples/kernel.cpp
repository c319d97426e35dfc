// Kernels in CUDA C++, compiled when the program runs.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>
#include <weir/weir.hpp>

namespace {

const std::string source = R"(
extern "C" __global__ void axpy(const float* x, float* y, float a, long long n) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x) {
        y[i] = a * x[i] + y[i];
    }
}
)";

bool run() {
    using namespace weir;
    const kernel axpy = kernel::from_source(source, "axpy", {"--use_fast_math"})
                            .with_signature("in float* x, inout float* y, float a, int64 n");

    const stream left(cuda());
    const stream right(cuda());
    const std::int64_t n = 100'000;
    const std::vector<float> ones(static_cast<std::size_t>(n), 1.0F);
    array x = empty(n, dtype::float32, left);
    array y = empty(n, dtype::float32, left);
    copy_from_host(left, x, std::as_bytes(std::span(ones)));
    copy_from_host(left, y, std::as_bytes(std::span(ones)));

    // Two streams, and no event: the second launch starts after the first, since both write y.
    launch(left, axpy, {400, 256}, in(x.view<float>()), inout(y.view<float>()), 2.0F, n);
    const event done =
        launch_event(on(right).label("axpy"), axpy, {400, 256}, in(x.view<float>()), inout(y.view<float>()), 3.0F, n);

    // The number 4 is converted to float, as the signature says.
    const std::vector<kernel_argument> arguments = {kernel_argument::in(x), kernel_argument::inout(y), 4, n};
    axpy.launch(left, {400, 256}, arguments);

    done.synchronize();  // or go on: the read waits for exactly what it reads
    const auto result = y.read<float>();
    const bool right_result = result[0] == 10.0F && result[static_cast<std::size_t>(n) - 1] == 10.0F;

    try {
        launch(left, axpy, {400, 256}, in(x.view<float>()), inout(y.view<float>()), 2.0, n);
    } catch (const argument_type_error& mistake) {
        std::puts(mistake.what());  // argument 3 of the kernel axpy is "float32 a", and got float64: pass ...
    }
    try {
        static_cast<void>(kernel::from_source("extern \"C\" __global__ void broken() { x = 1; }", "broken"));
    } catch (const argument_error& mistake) {
        std::puts(mistake.what());  // the kernel broken does not compile: broken.cu(1): error: ...
    }
    return right_result;
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
