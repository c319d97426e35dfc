// Element-wise kernels and reductions of large arrays on a CUDA device, beside kernels written by hand: both are bound by memory.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "contest.hpp"
#include "cuda_device.hpp"
#include "weir/elementwise.hpp"
#include "weir/reduction.hpp"
#include "weir/reduction_kernel.hpp"

namespace weir::bench {

namespace {

constexpr std::size_t times = 20;  ///< operations in one turn

/// Four elements in a transfer, one transfer for each thread.
const std::string axpy_source = R"(
extern "C" __global__ void axpy(const float4* x, float a, float4* y, long long n) {
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) {
        const float4 one = x[i];
        y[i] = make_float4(a * one.x + 1, a * one.y + 1, a * one.z + 1, a * one.w + 1);
    }
}
)";

/// As many threads as the device runs at once, each with the sum of every so many elements; then the sum of a block, which is added to
/// what is there.
const std::string sum_source = R"(
extern "C" __global__ void sum(const float4* x, double* y, long long n) {
    __shared__ double parts[256];
    double own = 0;
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (; i + 3 * step < n; i += 4 * step) {
        const float4 a = x[i], b = x[i + step], c = x[i + 2 * step], d = x[i + 3 * step];
        own += (double(a.x) + a.y + a.z + a.w) + (double(b.x) + b.y + b.z + b.w) + (double(c.x) + c.y + c.z + c.w) +
               (double(d.x) + d.y + d.z + d.w);
    }
    for (; i < n; i += step) {
        const float4 a = x[i];
        own += double(a.x) + a.y + a.z + a.w;
    }
    parts[threadIdx.x] = own;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            parts[threadIdx.x] += parts[threadIdx.x + half];
        }
    }
    if (threadIdx.x == 0) {
        atomicAdd(y, parts[0]);
    }
}
)";

struct vectors {
    device on = cuda_device();
    const driver::context* in = &context_of(on);
    stream s{on};
    raw_stream raw{*in};
    array x;
    array y;

    explicit vectors(std::int64_t n) : x(full({n}, 0.5, dtype::float32, s)), y(zeros({n}, dtype::float32, s)) {
        make_current(*in);
        s.synchronize();
    }
    void launch_by_hand(const kernel& what, unsigned blocks, void** arguments) const {
        in->api().launch(static_cast<driver::function_handle>(what.handle()), blocks, 1, 1, 256, 1, 1, 0, raw.handle(),
                         arguments, nullptr);
    }
};

contestant axpy_through_weir(std::int64_t n) {
    struct rig : vectors {
        elementwise_kernel axpy{"float x, float a", "float y", "y = a * x + 1", "axpy"};
        explicit rig(std::int64_t of) : vectors(of) {}
    };
    const auto data = std::make_shared<rig>(n);
    return {"Weir", times, [data] {
                for (std::size_t i = 0; i < times; ++i) {
                    data->axpy.launch(data->s, {data->x, 2.0F}, {&data->y});
                }
                data->s.synchronize();
            }};
}

contestant axpy_by_hand(std::int64_t n) {
    struct rig : vectors {
        kernel axpy = kernel::from_source(axpy_source, "axpy", {}, on);
        explicit rig(std::int64_t of) : vectors(of) {}
    };
    const auto data = std::make_shared<rig>(n);
    return {"driver, by hand", times, [data, n] {
                const void* from = data->x.device_data();
                void* to = data->y.device_data();
                float a = 2;
                long long fours = n / 4;
                void* arguments[] = {static_cast<void*>(&from), &a, static_cast<void*>(&to), &fours};
                for (std::size_t i = 0; i < times; ++i) {
                    data->launch_by_hand(data->axpy, static_cast<unsigned>((fours + 255) / 256), arguments);
                }
                data->raw.synchronize();
            }};
}

contestant sum_through_weir(std::int64_t n) {
    const auto data = std::make_shared<vectors>(n);
    return {"Weir", times, [data] {
                for (std::size_t i = 0; i < times; ++i) {
                    static_cast<void>(sum(data->s, data->x));
                }
                data->s.synchronize();
            }};
}

contestant argmax_through_weir(std::int64_t n) {
    struct rig : vectors {
        reduction_kernel argmax{"T x",
                                "T most, int64 where",
                                {.map = "{x, i}",
                                 .reduce = "b.value > a.value || (b.value == a.value && b.at < a.at) ? b : a",
                                 .post = "most = a.value; where = a.at",
                                 .type = "T value, int64 at",
                                 .name = "argmax"}};
        array most = zeros({}, dtype::float32, s);
        array where = zeros({}, dtype::int64, s);
        explicit rig(std::int64_t of) : vectors(of) {}
    };
    const auto data = std::make_shared<rig>(n);
    return {"Weir, argmax of a reduction_kernel", times, [data] {
                for (std::size_t i = 0; i < times; ++i) {
                    data->argmax.launch(data->s, {data->x}, {&data->most, &data->where});
                }
                data->s.synchronize();
            }};
}

contestant sum_by_hand(std::int64_t n) {
    struct rig : vectors {
        kernel sum = kernel::from_source(sum_source, "sum", {}, on);
        array result = zeros({1}, dtype::float64, s);
        explicit rig(std::int64_t of) : vectors(of) { s.synchronize(); }
    };
    const auto data = std::make_shared<rig>(n);
    return {"driver, by hand", times, [data, n] {
                const void* from = data->x.device_data();
                void* to = data->result.device_data();
                long long fours = n / 4;
                void* arguments[] = {static_cast<void*>(&from), static_cast<void*>(&to), &fours};
                for (std::size_t i = 0; i < times; ++i) {
                    data->launch_by_hand(data->sum, 132 * 8, arguments);
                }
                data->raw.synchronize();
            }};
}

std::string mebibytes(std::int64_t n) { return std::to_string(n * 4 / (1 << 20)) + " MiB"; }

const std::vector<contest> large_arrays = [] {
    std::vector<contest> made;
    for (const std::int64_t n : {std::int64_t{1} << 20, std::int64_t{1} << 26, std::int64_t{1} << 28}) {
        const std::string size = std::to_string(n * 4 / (1 << 20));
        made.emplace_back(
            "cuda/elementwise/axpy/" + size, "y = a * x + 1 of float32, an array has " + mebibytes(n),
            comparison::with_peers,
            std::vector<make_contestant>{[n] { return axpy_through_weir(n); }, [n] { return axpy_by_hand(n); }});
        made.emplace_back(
            "cuda/elementwise/sum/" + size, "the sum of float32 in float64, the array has " + mebibytes(n),
            comparison::with_peers,
            std::vector<make_contestant>{[n] { return sum_through_weir(n); }, [n] { return argmax_through_weir(n); },
                                         [n] { return sum_by_hand(n); }});
    }
    return made;
}();

}  // namespace

}  // namespace weir::bench
