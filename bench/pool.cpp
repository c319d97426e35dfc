// How much memory the pool has from the driver where several streams do the work that one could do, and whether a stream waits for
// another because of memory (rule L1).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "cuda_device.hpp"
#include "weir/testing.hpp"
#include "weir/weir.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t kib = 1024;
constexpr double mib = 1024 * 1024;

/// Null, and the benchmark left out, if the machine has no such device.
std::optional<device> device_of(benchmark::State& state, const std::string& name) {
    try {
        return device::from_name(name);
    } catch (const std::exception& why) {
        state.SkipWithError(why.what());
        return std::nullopt;
    }
}

/// Arrays of 64 KiB to 4 MiB, each made, filled twice and dropped on one of the streams in turn, 64 in flight. The same arrays in the
/// same order, however many streams there are.
void reserved(benchmark::State& state, const std::string& name) {
    const std::optional<device> on = device_of(state, name);
    if (!on) {
        return;
    }
    constexpr int rounds = 512;
    constexpr int in_flight = 64;
    const std::vector<stream> streams = [&] {
        std::vector<stream> made;
        for (std::int64_t i = 0; i < state.range(0); ++i) {
            made.emplace_back(*on);
        }
        return made;
    }();
    std::size_t most = 0;
    std::size_t most_used = 0;
    for (auto _ : state) {
        on->synchronize();
        memory::trim(*on);
        std::mt19937 random(1);
        for (int round = 0; round < rounds; ++round) {
            const stream& by = streams[static_cast<std::size_t>(round) % streams.size()];
            const auto elements = static_cast<std::int64_t>((1 + random() % 64) * 64 * kib / sizeof(double));
            array x = empty(elements, dtype::float64, by);
            fill(by, x, 1);
            fill(by, x, 2);
            if (round % in_flight == in_flight - 1) {
                const memory::statistics now = memory::stats(*on);
                most = std::max(most, now.live + now.pending + now.cached);
                most_used = std::max(most_used, now.live + now.pending);
                on->synchronize();
            }
        }
    }
    state.counters["MiB_reserved"] = static_cast<double>(most) / mib;
    state.counters["MiB_live_and_pending"] = static_cast<double>(most_used) / mib;
    state.counters["over_waited"] = static_cast<double>(memory::stats(*on).over_waited);
}
void by_streams(benchmark::internal::Benchmark* one) {
    one->ArgName("streams")->Iterations(1)->UseRealTime();
    for (const int streams : {1, 2, 4, 8}) {
        one->Arg(streams);
    }
}
BENCHMARK_CAPTURE(reserved, cpu, "cpu")->Apply(by_streams);
BENCHMARK_CAPTURE(reserved, sim, "sim:0")->Apply(by_streams);
BENCHMARK_CAPTURE(reserved, cuda, "cuda:0")->Apply(by_streams);

enum class transformed : std::uint8_t {
    own_array_beside_an_idle_stream,
    own_array_beside_a_busy_stream,
    array_of_a_busy_stream,  ///< behind an event that the other stream recorded before it was busy
};

/// One stream makes an array with temporaries and, if it is busy, then runs a kernel of 300 ms and a transform. Another one, under manual
/// ordering and with nothing of that to wait for, transforms: how long until it is done.
void beside(benchmark::State& state, transformed what) {
    constexpr long long duration = 300'000'000;  // ns
    try {
        const device on = cuda_device();
        const kernel spin = kernel::from_source(spin_source, "spin", {}, on);
        const std::int64_t count = state.range(0);
        const stream first(on);
        const stream second(on);
        array word = zeros(1, dtype::float64, first);
        array y = full(count, 2, dtype::complex128, second);
        static_cast<void>(fft::ifft(second, fft::fft(second, y)));  // makes the plans
        for (auto _ : state) {
            on.synchronize();
            memory::trim(on);
            const ordering_scope manual(ordering_mode::manual);
            array x = add(first, random(count, 1, dtype::float64, first),
                          multiply(first, random(count, 2, dtype::float64, first), std::complex<double>(0, 1)));
            const event made = first.record();
            const bool is_busy = what != transformed::own_array_beside_an_idle_stream;
            if (is_busy) {
                launch(first, spin, {1, 1}, inout<double>(word), duration);
            }
            const array result = fft::fft(first, x);
            if (!is_busy) {
                first.synchronize();
            }
            const auto start = std::chrono::steady_clock::now();
            if (what == transformed::array_of_a_busy_stream) {
                second.wait(made);
            }
            const array back = fft::ifft(second, what == transformed::array_of_a_busy_stream ? x : y);
            second.synchronize();
            state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
        }
        on.synchronize();
    } catch (const std::exception& why) {
        state.SkipWithError(why.what());
    }
}
void by_elements(benchmark::internal::Benchmark* one) {
    one->ArgName("elements")->Iterations(5)->UseManualTime()->Unit(benchmark::kMillisecond);
    for (const int elements : {1 << 12, 1 << 16, 1 << 18}) {
        one->Arg(elements);
    }
}
BENCHMARK_CAPTURE(beside, idle_stream, transformed::own_array_beside_an_idle_stream)->Apply(by_elements);
BENCHMARK_CAPTURE(beside, busy_stream, transformed::own_array_beside_a_busy_stream)->Apply(by_elements);
BENCHMARK_CAPTURE(beside, array_of_a_busy_stream, transformed::array_of_a_busy_stream)->Apply(by_elements);

}  // namespace
}  // namespace weir::bench
