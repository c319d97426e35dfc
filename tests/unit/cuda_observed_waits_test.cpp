// The driver is given the same waits with an observer and without one (tests/property/observed_waits_test.cpp: which ones).
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "unit/cuda_support.hpp"
#include "weir/check.hpp"
#include "weir/trace.hpp"

namespace weir::test {
namespace {

enum class watched { not_at_all, by_trace, by_check };

/// The waits that each step of a random program gives to the driver, while none of it completes.
std::vector<unsigned long long> waits_of_steps(std::uint32_t seed, watched how,
                                               ordering_mode mode = ordering_mode::automatic) {
    std::mt19937 random(seed);  // NOLINT(cert-msc51-cpp): the same program each time
    const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
    std::vector<stream> streams;
    std::vector<array> arrays;
    for (int i = 0; i < 3; ++i) {
        streams.emplace_back(cuda());
        arrays.push_back(make(streams.back(), 0));
    }
    // Giving a stream's handle out records an event in it, which must be complete before anything is held.
    const std::array handles{handle_of(streams[0]), handle_of(streams[1]), handle_of(streams[2])};
    cuda().synchronize();
    const ordering_scope ordering(mode);
    std::optional<trace_scope> trace;
    std::optional<check_scope> check;
    if (how == watched::by_trace) {
        trace.emplace();
    } else if (how == watched::by_check) {
        check.emplace();
    }
    fake_gate first(handles[0]);
    fake_gate second(handles[1]);
    fake_gate third(handles[2]);
    std::vector<unsigned long long> counts;
    for (int step = 0; step < 30; ++step) {
        const array& a = arrays[below(3)];
        const array& b = arrays[below(3)];
        array& c = arrays[below(3)];
        fake_cuda::forget_calls();
        // A kernel, since a stream into which an operation puts nothing is idle as soon as the watcher polls it.
        compute(streams[below(3)], binary_operation::add, a, b, c);
        counts.push_back(fake_cuda::own_calls("cuStreamWaitEvent"));
    }
    first.open();
    second.open();
    third.open();
    cuda().synchronize();
    return counts;
}

TEST(CudaObserved, V2TheDriverIsGivenTheSameWaitsWithAnObserver) {
    WEIR_NEEDS_FAKE();
    unsigned long long waits = 0;
    for (std::uint32_t seed = 1; seed <= 30; ++seed) {
        const auto shipped = waits_of_steps(seed, watched::not_at_all);
        EXPECT_EQ(waits_of_steps(seed, watched::by_trace), shipped) << "program " << seed;
        EXPECT_EQ(waits_of_steps(seed, watched::by_check), shipped) << "program " << seed;
        waits += std::accumulate(shipped.begin(), shipped.end(), 0ULL);
    }
    EXPECT_GT(waits, 30U) << "the programs need no waits";
}

TEST(CudaObserved, V1ControlWhereTheProgramOrdersCheckAddsWaits) {
    WEIR_NEEDS_FAKE();
    const auto shipped = waits_of_steps(1, watched::not_at_all, ordering_mode::manual);
    EXPECT_EQ(waits_of_steps(1, watched::by_trace, ordering_mode::manual), shipped);
    EXPECT_NE(waits_of_steps(1, watched::by_check, ordering_mode::manual), shipped);
}

}  // namespace
}  // namespace weir::test
