// A C function over an index space as work of a stream: the threads of the CPU's streams share the indices.
#include <cstdint>
#include <cstdio>

#include <weir/weir.hpp>

// `arguments` has the address of each value, as cuLaunchKernel has them. Several threads call it at once, for indices of their own.
extern "C" int axpy(std::int64_t begin, std::int64_t end, void* const* arguments) {
    const auto a = *static_cast<const float*>(arguments[0]);
    const auto* const x = *static_cast<const float* const*>(arguments[1]);
    auto* const y = *static_cast<float* const*>(arguments[2]);
    for (std::int64_t i = begin; i < end; ++i) {
        y[i] = a * x[i] + y[i];
    }
    return 0;  // anything else fails the operation
}

int main() {
    using namespace weir;
    const std::int64_t n = 1'000'000;
    const stream load;
    const stream s;
    array x = full(n, 3.0, dtype::float32, load);
    array y = ones(n, dtype::float32, load);
    // No wait between the streams: the launch declares what it reads and writes.
    launch(s, &axpy, n, 2.0F, in(x.view<float>()), inout(y.view<float>()));
    std::printf("%g\n", static_cast<double>(y.read<float>()[0]));
}
