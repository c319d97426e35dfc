// What it costs to take and give back memory in stream order.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>

#include "contest.hpp"
#include "weir/weir.hpp"

namespace weir::bench {

namespace {

constexpr std::size_t count = 10000;
constexpr std::size_t bytes = 4096;

contestant from_pool() {
    const stream on;
    return {"Weir", count, [on] {
                for (std::size_t i = 0; i < count; ++i) {
                    const buffer memory(bytes, on);
                    benchmark::DoNotOptimize(memory.data());
                }
            }};
}

contestant array_from_pool() {
    const stream on;
    return {"Weir, weir::empty", count, [on] {
                for (std::size_t i = 0; i < count; ++i) {
                    array x = empty(bytes / sizeof(double), dtype::float64, on);
                    benchmark::DoNotOptimize(x.data());
                }
            }};
}

contestant from_malloc() {
    return {"malloc, free", count, [] {
                for (std::size_t i = 0; i < count; ++i) {
                    void* memory = std::malloc(bytes);
                    benchmark::DoNotOptimize(memory);
                    std::free(memory);
                }
            }};
}

contestant used_from_pool() {
    const stream on;
    return {"Weir", count, [on] {
                for (std::size_t i = 0; i < count; ++i) {
                    array x = empty(bytes / sizeof(double), dtype::float64, on);
                    access(
                        on, [](native_stream, std::span<double>) {}, out<double>(x));
                }
                on.synchronize();
            }};
}

contestant used_again() {
    struct rig {
        stream on;
        array x = empty(bytes / sizeof(double), dtype::float64, on);
    };
    const auto with = std::make_shared<rig>();
    return {"Weir, the same array throughout", count, [with] {
                for (std::size_t i = 0; i < count; ++i) {
                    access(
                        with->on, [](native_stream, std::span<double>) {}, out<double>(with->x));
                }
                with->on.synchronize();
            }};
}

const contest allocate_free("allocate_free", "4 KiB taken and given back on one stream", comparison::with_peers,
                            {from_pool, array_from_pool, from_malloc});
const contest allocate_use_free("allocate_use_free", "an array of 4 KiB made, written by an empty operation, dropped",
                                comparison::with_peers, {used_from_pool, used_again});

}  // namespace

}  // namespace weir::bench
