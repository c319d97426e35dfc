// Shared by the tests of kernels. They run on the device of WEIR_CUDA_DRIVER: the fake one, unless a GPU is named.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "support/arrays.hpp"
#include "support/fake_cuda.hpp"
#include "support/messages.hpp"
#include "weir/kernel.hpp"

namespace weir::test {

/// Several kernels in one source text.
inline const std::string kernel_source = R"(
extern "C" __global__ void __launch_bounds__(1024) axpy(const float* x, float* y, float a, long long n) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] += a * x[i];
    }
}
extern "C" __global__ void fill(int* y, int value, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        y[i] = value;
    }
}
extern "C" __global__ void nothing() {}
)";

/// A refusal without its end, which says the launch's label and line.
inline std::string without_place(std::string message) {
    message.resize(std::min(message.find("; the launch is "), message.size()));
    return message;
}

/// Whether there are two CUDA devices.
inline bool has_two_gpus() {
    const std::vector<device> all = devices();
    return std::count_if(all.begin(), all.end(), [](const device& one) { return one.kind() == device_kind::cuda; }) > 1;
}

/// The arrays of axpy.
struct axpy_arrays {
    stream on;
    array x = make_array<float>(on, {1000}, std::vector<float>(1000, 2.0F));
    array y = make_array<float>(on, {1000}, std::vector<float>(1000, 1.0F));

    explicit axpy_arrays(device where) : on(where) {}
};

}  // namespace weir::test
