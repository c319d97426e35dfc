// Every backend passes the same tests: each conformance test runs once on each of the devices listed here.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/device.hpp"
#include "weir/stream.hpp"
#include "weir/testing.hpp"

namespace weir::test {

/// A device on which the conformance suite runs, and how it behaves meanwhile if it is a simulated one.
struct tested_backend {
    const char* name;
    const char* where;  ///< the device's name
    std::optional<testing::sim_settings> settings;
    bool is_own = false;  ///< a device of the tests' own: support/thread_device.cpp
};

/// Registers the device of the tests' own. Null in programs that are not linked with it.
[[gnu::weak]] void register_own_device();

/// A test that a backend does not pass, and the reason. If it does pass, the run fails: the entry is stale. The run also fails if
/// there is no such test: the entry is dead.
struct exclusion {
    std::string_view file;     ///< where the test is, below tests/
    std::string_view test;     ///< "suite.name"
    std::string_view backend;  ///< as tested_backend::name
    std::string_view reason;
};

/// All backends. A new one is added here, and nowhere else. A program that is linked with the device of the tests' own runs the tests
/// on that alone; all other programs run them on all others.
inline const std::vector<tested_backend>& tested_backends() {
    static const std::vector<tested_backend> all = {
        {"cpu", "cpu", std::nullopt},
        {"cuda", "cuda:0", std::nullopt},
        {"sim", "sim:0", testing::sim_settings{.engines = 4}},
        {"sim_adversarial", "sim:1", testing::sim_settings{.engines = 3, .seed = 20, .adversarial = true}},
        {"sim_virtual", "sim:2", testing::sim_settings{.engines = 4, .seed = 21, .virtual_clock = true}},
        {"thread", "thread:0", std::nullopt, true},
    };
    return all;
}

inline constexpr std::string_view one_at_a_time =
    "two operations of it meet while they run, and under the virtual clock one runs at a time";
inline constexpr std::string_view no_host_writes = "the host cannot write to the device's memory in place";
inline constexpr std::string_view no_replacement =
    "it replaces the host's library; fft_cuda_test.cpp has the same for cuFFT";
inline constexpr std::array exclusions = {
    exclusion{"unit/fft_plan_test.cpp", "FftPlan.E6AnExceptionInTheMiddleLeavesThePlanAsItWas", "cuda", no_replacement},
    exclusion{"unit/fft_plan_test.cpp", "FftPlan.E6AFailedTransformIsToldWhereItsResultIsRead", "cuda", no_replacement},
    exclusion{"conformance/poison_test.cpp", "K4Poison.AHostThatWritesHeals", "sim", no_host_writes},
    exclusion{"conformance/poison_test.cpp", "K4Poison.AHostThatWritesHeals", "sim_adversarial", no_host_writes},
    exclusion{"conformance/poison_test.cpp", "K4Poison.AHostThatWritesHeals", "sim_virtual", no_host_writes},
    exclusion{"conformance/poison_test.cpp", "K4Poison.AHostThatWritesHeals", "thread", no_host_writes},
    exclusion{"conformance/threads_test.cpp", "S3.WaitingForAStreamThatDidNothingOrdersNothing", "sim_virtual",
              "it needs the work of a dropped stream to end by itself"},
    exclusion{"conformance/threads_test.cpp", "O8.ControlTwoUnorderedAdditionsLoseOne", "sim_virtual", one_at_a_time},
    exclusion{"conformance/streams_test.cpp", "C2.KernelsOfTwoStreamsMeet", "sim_virtual", one_at_a_time},
    exclusion{"conformance/threads_test.cpp", "S1.TwoOperationsThatMeetAlwaysRunAtOnce", "sim_virtual", one_at_a_time},
};
static_assert(std::none_of(exclusions.begin(), exclusions.end(),
                           [](const exclusion& one) { return one.reason.empty(); }),
              "an exclusion has a reason");

/// Fails the running test, or the run, if the excluded test passes by now.
void expect_not_to_pass(const exclusion& one);
/// What is wrong with the entry, as far as this program can tell: its backend or its file does not exist, or its file is part of
/// this program and the test does not exist. Empty if nothing is wrong.
[[nodiscard]] std::string reason_why_dead(const exclusion& one);

/// The device of that name, ready to run host code; none if this machine has none, and `why_not` says why.
[[nodiscard]] std::optional<device> find_device(const char* name, std::string& why_not);

/// The device under test.
[[nodiscard]] device here();

/// Streams of the device under test.
[[nodiscard]] inline std::vector<stream> streams_here(std::size_t count) {
    std::vector<stream> made;
    for (std::size_t i = 0; i < count; ++i) {
        made.emplace_back(here());
    }
    return made;
}

/// Registers a test for each backend: "suite.name/backend". See WEIR_CONFORMANCE.
bool register_everywhere(const char* suite, const char* name, const char* file, int line, void (*body)());

}  // namespace weir::test

/// A test of the conformance suite. Its body runs on each backend, with `here()` as the device to use.
#define WEIR_CONFORMANCE(suite, name)                                                          \
    static void suite##_##name();                                                              \
    [[maybe_unused]] static const bool suite##_##name##_registered =                           \
        ::weir::test::register_everywhere(#suite, #name, __FILE__, __LINE__, &suite##_##name); \
    static void suite##_##name()

/// The same for a test that is a member of a class of its own, derived from `fixture`.
#define WEIR_CONFORMANCE_F(fixture, name)                            \
    struct fixture##_##name final : fixture {                        \
        void run();                                                  \
    };                                                               \
    WEIR_CONFORMANCE(fixture, name##_) { fixture##_##name().run(); } \
    void fixture##_##name::run()
