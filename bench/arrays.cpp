// What whole-array operations cost beside plain loops over the same memory.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "contest.hpp"
#include "weir/weir.hpp"

namespace weir::bench {

namespace {

constexpr std::int64_t large = std::int64_t{1} << 22;  ///< elements: far more than fit into the caches
constexpr std::int64_t side = 2048;
constexpr std::size_t small_operations = 10000;

/// Three arrays, or vectors, of as many floats.
struct weir_arrays {
    explicit weir_arrays(std::int64_t count)
        : x(ones(count, dtype::float32, on)), y(ones(count, dtype::float32, on)), z(ones(count, dtype::float32, on)) {
        on.synchronize();
    }
    stream on;
    array x, y, z;
};
struct plain_arrays {
    explicit plain_arrays(std::int64_t count) : x(static_cast<std::size_t>(count), 1.0F), y(x), z(x) {}
    std::vector<float> x, y, z;
};

contestant weir_copy() {
    const auto with = std::make_shared<weir_arrays>(large);
    return {"Weir, copy", 1, [with] { copy(with->on, with->y, with->x).synchronize(); }};
}
contestant plain_copy() {
    const auto with = std::make_shared<plain_arrays>(large);
    return {"std::memcpy", 1, [with] {
                std::memcpy(with->y.data(), with->x.data(), with->x.size() * sizeof(float));
                benchmark::DoNotOptimize(with->y.data());
                benchmark::ClobberMemory();
            }};
}

contestant weir_sum() {
    const auto with = std::make_shared<weir_arrays>(large);
    return {"Weir, x + y", 1,
            [with] { compute(with->on, binary_operation::add, with->x, with->y, with->z).synchronize(); }};
}
contestant plain_sum() {
    const auto with = std::make_shared<plain_arrays>(large);
    return {"a loop", 1, [with] {
                std::transform(with->x.begin(), with->x.end(), with->y.begin(), with->z.begin(), std::plus<>());
                benchmark::DoNotOptimize(with->z.data());
                benchmark::ClobberMemory();
            }};
}

contestant weir_transpose() {
    const auto with = std::make_shared<weir_arrays>(side * side);
    return {"Weir, copy of x.t()", 1, [with] {
                copy(with->on, with->y.reshape({side, side}), with->x.reshape({side, side}).t()).synchronize();
            }};
}
contestant plain_transpose() {
    const auto with = std::make_shared<plain_arrays>(side * side);
    return {"two loops", 1, [with] {
                constexpr auto n = static_cast<std::size_t>(side);
                for (std::size_t i = 0; i < n; ++i) {
                    for (std::size_t j = 0; j < n; ++j) {
                        with->y[i * n + j] = with->x[j * n + i];
                    }
                }
                benchmark::DoNotOptimize(with->y.data());
                benchmark::ClobberMemory();
            }};
}

contestant weir_reduce() {
    const auto with = std::make_shared<weir_arrays>(large);
    return {"Weir, sum", 1, [with] {
                float total = sum(with->on, with->x).read<float>()[0];
                benchmark::DoNotOptimize(total);
            }};
}
contestant plain_reduce() {
    const auto with = std::make_shared<plain_arrays>(large);
    return {"a loop in double", 1, [with] {
                double total = 0;
                for (const float one : with->x) {
                    total += static_cast<double>(one);
                }
                benchmark::DoNotOptimize(total);
            }};
}

contestant weir_small() {
    const auto with = std::make_shared<weir_arrays>(16);
    return {"Weir, x += y", small_operations, [with] {
                for (std::size_t i = 0; i < small_operations; ++i) {
                    compute(with->on, binary_operation::add, with->x, with->y, with->x);
                }
                with->on.synchronize();
            }};
}
contestant weir_small_body() {
    const auto with = std::make_shared<weir_arrays>(16);
    return {"Weir, an access of the program's own", small_operations, [with] {
                for (std::size_t i = 0; i < small_operations; ++i) {
                    access(
                        with->on,
                        [](native_stream, std::span<float> x, std::span<const float> y) {
                            for (std::size_t k = 0; k < x.size(); ++k) {
                                x[k] += y[k];
                            }
                        },
                        inout<float>(with->x), in<float>(with->y));
                }
                with->on.synchronize();
            }};
}

const contest array_copy("array_copy", "4 Mi floats copied", comparison::with_peers, {weir_copy, plain_copy});
const contest array_add("array_add", "4 Mi floats added to as many", comparison::with_peers, {weir_sum, plain_sum});
const contest array_transpose("array_transpose", "2048 x 2048 floats transposed", comparison::with_peers,
                              {weir_transpose, plain_transpose});
const contest array_sum("array_sum", "the sum of 4 Mi floats", comparison::with_peers, {weir_reduce, plain_reduce});
const contest array_small("array_small", "16 floats added in place, one operation each", comparison::with_peers,
                          {weir_small, weir_small_body});

}  // namespace

}  // namespace weir::bench
