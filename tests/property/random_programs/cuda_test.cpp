// The same random programs on a CUDA device, ordered by the driver's own events. Code of the host stands for kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>

#include "random_programs/complete.hpp"
#include "random_programs/generate.hpp"
#include "random_programs/interpret.hpp"
#include "random_programs/oracle.hpp"
#include "random_programs/settings.hpp"
#include "random_programs/shrink.hpp"
#include "random_programs/strip.hpp"
#include "support/devices.hpp"
#include "weir/weir.hpp"

namespace random_programs {
namespace {

using devices = std::array<weir::device, most_devices>;

/// A CUDA device, and a device of another kind or another one of CUDA's.
struct pair_of_devices {
    weir::device cuda;
    weir::device third;
};

/// A program of one device has it to itself, host tasks included. A program of several devices uses it beside the CPU, and copies
/// between the two and a third.
devices devices_for(const program& one, const pair_of_devices& on) {
    return one.devices == 1 ? devices{on.cuda, weir::sim(14), on.third} : devices{weir::cpu(), on.cuda, on.third};
}

/// Work of the device's own (here the copies) may run although it depends on a failure, and only its results are refused
/// (rule K4); the model does not know what the host then does with these. So only code of the host comes after a failure.
program for_cuda(program raw) {
    const auto any = [&](auto&& what) {
        return std::any_of(raw.phases.begin(), raw.phases.end(), [&](const auto& phase) {
            return std::any_of(phase.begin(), phase.end(),
                               [&](const auto& steps) { return std::any_of(steps.begin(), steps.end(), what); });
        });
    };
    if (any([](const step& one) { return one.kind == step_kind::copy || one.kind == step_kind::copy_from_host; })) {
        for (auto& phase : raw.phases) {
            for (auto& steps : phase) {
                for (step& one : steps) {
                    one.fails = false;
                }
            }
        }
    }
    return raw;
}

outcome run_completed(const program& completed, const pair_of_devices& on) {
    return run(completed, expected(completed), {.on = devices_for(completed, on)});
}

/// The smallest program found that also goes wrong.
std::string smallest(const program& raw, const pair_of_devices& on) {
    const program found = complete(shrink(raw, [&](const program& smaller) {
        const program completed = complete(smaller);
        return !run_completed(completed, on).ok() || !run_completed(completed, on).ok();
    }));
    const outcome again = run_completed(found, on);
    return "smallest program found (" + (again.ok() ? "right this time" : again.wrong) + "):\n" + to_string(found);
}

TEST(random_programs_cuda, compute_what_the_serial_program_computes) {
    const char* const name = "random_programs_cuda.compute_what_the_serial_program_computes";
    std::string why_not;
    const std::optional<weir::device> first = weir::test::find_device("cuda:0", why_not);
    if (!first) {
        GTEST_SKIP() << why_not;
    }
    const std::optional<weir::device> second = weir::test::find_device("cuda:1", why_not);
    watchdog dog(name);
    std::uint64_t programs = 0;
    std::uint64_t on_two = 0;
    for (std::uint64_t i = 0; i < wanted_cuda_programs(); ++i, ++programs) {
        const std::uint64_t seed = first_seed() + i;
        dog.start(seed);
        const program raw = for_cuda(generate(seed));
        // By the seed, so that a replay has the same devices.
        const bool has_two = second && seed % 2 != 0;
        const pair_of_devices on{*first, has_two ? *second : weir::sim(15)};
        const outcome result = run_completed(complete(raw), on);
        ASSERT_TRUE(result.ok()) << result.wrong << "\n" << replay_command(seed, name) << "\n" << smallest(raw, on);
        on_two += has_two && raw.devices > 2 ? 1 : 0;
    }
    if (second && programs >= 20) {
        EXPECT_GT(on_two, 0U);
    }
    std::printf("%llu programs on a CUDA device, %llu of them on a second one as well%s%s\n",
                static_cast<unsigned long long>(programs), static_cast<unsigned long long>(on_two), second ? "" : ": ",
                second ? "" : why_not.c_str());
}

TEST(random_programs_cuda, control_without_ordering_they_compute_something_else) {
    std::string why_not;
    const std::optional<weir::device> cuda = weir::test::find_device("cuda:0", why_not);
    if (!cuda) {
        GTEST_SKIP() << why_not;
    }
    const pair_of_devices on{*cuda, weir::sim(15)};
    watchdog dog("random_programs_cuda.control_without_ordering_they_compute_something_else");
    int programs = 0;
    int wrong = 0;
    for_each_serial_seed(100, [&](std::uint64_t seed) {
        dog.start(seed);
        const program completed = complete(for_cuda(generate(seed)));
        const stripped_program bare = strip(completed, gate_opening::as_written);
        ++programs;
        wrong += run(bare.steps, expected(bare.steps), {.racing = true, .on = devices_for(completed, on)}).ok() ? 0 : 1;
    });
    std::printf("without ordering %d of %d programs went wrong on a CUDA device\n", wrong, programs);
    if (programs >= 20) {
        EXPECT_GT(wrong, 0);
    }
}

}  // namespace
}  // namespace random_programs
