// One body for the CPU and for CUDA devices. A plain C++ compiler makes a program for the CPU of it; nvcc makes one for both:
//     nvcc -std=c++20 -x cu --extended-lambda --expt-relaxed-constexpr -arch=native one_source.cpp -lweir
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>
#include <weir/weir.hpp>

#ifndef __CUDACC__
#define __host__
#define __device__
#endif

namespace {

/// The largest error of sqrt(i) + a, computed on this device.
double largest_error(weir::device where, float a) {
    const weir::stream s(where);
    const std::int64_t n = 100'000;
    weir::array y = weir::empty(n, weir::dtype::float32, s);
    weir::array z = weir::empty({n / 100, 100}, weir::dtype::float32, s);

    weir::parallel_for(
        s, n, [a] __host__ __device__(std::size_t i, std::span<float> to) { to[i] = sqrtf(static_cast<float>(i)) + a; },
        weir::out(y.view<float>()));
    weir::parallel_for(
        s, n,
        [] __host__ __device__(std::size_t i, std::span<const float> from, weir::strided_span<float, 2> to) {
            to(i / 100, i % 100) = from[i];
        },
        weir::in(y.view<float>()), weir::out(z.strided<float, 2>()));

    const auto result = z.read<float>();
    double largest = 0;
    for (std::size_t i = 0; i < result.size(); ++i) {
        const double exact = std::sqrt(static_cast<double>(i)) + static_cast<double>(a);
        largest = std::fmax(largest, std::fabs(static_cast<double>(result[i]) - exact));
    }
    return largest;
}

}  // namespace

int main() {
    std::vector<weir::device> where = {weir::cpu()};
#ifdef __CUDACC__
    for (const weir::device& each : weir::devices()) {
        if (each.kind() == weir::device_kind::cuda) {
            where.push_back(each);
        }
    }
#endif
    bool right = true;
    for (const weir::device& each : where) {
        const double error = largest_error(each, 0.5F);
        std::printf("%s: %g\n", each.name().c_str(), error);
        right = right && error < 1e-4;
    }
    return right ? 0 : 1;
}
