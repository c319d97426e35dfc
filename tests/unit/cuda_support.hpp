// What the tests of CUDA streams have in common.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/stream_state.hpp"
#include "support/arrays.hpp"
#include "support/fake_cuda.hpp"
#include "weir/weir.hpp"

namespace weir::test {

/// The driver's handle, without telling the stream that others have it.
inline void* handle_of(const stream_ref& s) { return s.state().queue->native_handle(); }

/// y = x * 10 + 1, elementwise.
inline const kernel& step_kernel() {
    static const auto* const one = new kernel(kernel::from_source(R"(
extern "C" __global__ void step(const double* x, double* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        y[i] = x[i] * 10 + 1;
    }
}
)",
                                                                  "step"));
    return *one;
}

inline constexpr std::int64_t elements = 64;

inline completion step(const on& where, const array& to, const array& from) {
    return launch(where, step_kernel(), {2, 32}, in<double>(from), out<double>(to), static_cast<int>(elements));
}
inline completion step_in_place(const on& where, const array& x) {
    return launch(where, step_kernel(), {2, 32}, inout<double>(x), inout<double>(x), static_cast<int>(elements));
}

inline array make(const stream_ref& s, double value) { return full(elements, value, dtype::float64, s); }

}  // namespace weir::test
