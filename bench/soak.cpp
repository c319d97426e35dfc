// A million operations over a thousand streams, with a bounded number in flight: what each costs, and what memory the
// process has taken after a tenth and at the end. Flat memory means that the second figure is the first.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <fstream>
#include <random>
#include <vector>

#include "weir/testing.hpp"
#include "weir/weir.hpp"

namespace {

using namespace weir;  // NOLINT(google-build-using-namespace): this program is about nothing else

constexpr std::size_t operations = 1'000'000;

/// What the process has of the machine's memory, in MiB.
double resident() {
    std::ifstream from("/proc/self/statm");
    double pages = 0;
    from >> pages >> pages;
    return pages * 4096 / (1 << 20);
}

/// Each operation reads a random array and writes another one on a random stream; now and then an array is made anew.
void soak(benchmark::State& state) {
    const auto stream_count = static_cast<std::size_t>(state.range(0));
    const auto in_flight = static_cast<std::size_t>(state.range(1));
    double early = 0;
    double late = 0;
    double took = 0;
    for (auto _ : state) {
        std::mt19937 random(1);
        std::vector<stream> streams(stream_count);
        std::vector<array> arrays;
        for (std::size_t i = 0; i < stream_count; ++i) {
            arrays.push_back(empty(256, dtype::float32, streams[i]));
        }
        std::deque<completion> pending;
        const auto start = std::chrono::steady_clock::now();
        for (std::size_t i = 0; i < operations; ++i) {
            const stream& on = streams[random() % stream_count];
            const array& from = arrays[random() % stream_count];
            array& to = arrays[random() % stream_count];
            if (i % 16 == 0) {
                to = empty(256, dtype::float32, on);
            }
            if (from.view<float>().device_span().data() == to.view<float>().device_span().data()) {
                pending.push_back(access(
                    on, [](native_stream, auto) {}, inout<float>(to)));
            } else {
                pending.push_back(access(
                    on, [](native_stream, auto, auto) {}, in<float>(from), out<float>(to)));
            }
            if (pending.size() > in_flight) {
                pending.front().synchronize();
                pending.pop_front();
            }
            if (i == operations / 10) {
                early = resident();
            }
        }
        took = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
        late = resident();
        cpu().synchronize();
    }
    state.counters["ns/operation"] = took / static_cast<double>(operations);
    state.counters["MiB after a tenth"] = early;
    state.counters["MiB at the end"] = late;
}

BENCHMARK(soak)
    ->ArgNames({"streams", "in_flight"})
    ->Args({2, 1000})
    ->Args({1000, 1000})
    ->Args({1000, 10000})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

/// One array handed on, twice, through streams that a gate holds: nothing is over, and each operation is ordered after all
/// before it.
void held_chain(benchmark::State& state) {
    const auto stream_count = static_cast<std::size_t>(state.range(0));
    double taken = 0;
    for (auto _ : state) {
        const std::vector<stream> streams(stream_count);
        array x = empty(64, dtype::float64, streams[0]);
        testing::gate gate;
        for (const stream& one : streams) {
            gate.hold(one);
        }
        const double before = resident();
        for (std::size_t i = 0; i < 2 * stream_count; ++i) {
            access(
                streams[i % stream_count], [](native_stream, auto) {}, inout<double>(x));
        }
        taken = resident() - before;
        gate.open();
        cpu().synchronize();
    }
    state.counters["MiB for what is pending"] = taken;
}

BENCHMARK(held_chain)->ArgName("streams")->Arg(1000)->Arg(10000)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
