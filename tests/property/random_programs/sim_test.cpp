// The same random programs on simulated accelerators, whose streams do what luck does not do on the CPU.
#include <gtest/gtest.h>

#include <cstdio>

#include "random_programs/complete.hpp"
#include "random_programs/generate.hpp"
#include "random_programs/interpret.hpp"
#include "random_programs/oracle.hpp"
#include "random_programs/settings.hpp"
#include "random_programs/strip.hpp"
#include "weir/testing.hpp"

namespace random_programs {
namespace {

/// The program without what cannot be done with memory that the host does not reach: changing it in place, and looking at
/// it for longer than a moment.
program for_accelerators(program raw) {
    for (auto& phase : raw.phases) {
        for (auto& steps : phase) {
            std::erase_if(steps, [](const step& one) {
                return one.kind == step_kind::write_host || one.kind == step_kind::open_view ||
                       one.kind == step_kind::touch_view || one.kind == step_kind::close_view;
            });
            for (step& one : steps) {
                one.how = one.how == form::host_task ? form::access : one.how;
            }
        }
    }
    return raw;
}

weir::testing::sim_settings settings_of(std::uint64_t seed, bool virtual_clock) {
    return {.engines = 1 + static_cast<int>(seed % 5),
            .copy_engines = 1 + static_cast<int>(seed % 2),
            .seed = seed,
            .adversarial = seed % 3 != 0,
            .virtual_clock = virtual_clock};
}

void expect_all_right(const char* test, bool virtual_clock) {
    watchdog dog(test);
    const weir::device sim = weir::sim(virtual_clock ? 8 : 9);
    for (std::uint64_t i = 0; i < wanted_programs(10); ++i) {
        const std::uint64_t seed = first_seed() + i;
        dog.start(seed);
        const program completed = complete(for_accelerators(generate(seed)));
        const weir::testing::simulated behaviour(sim, settings_of(seed, virtual_clock));
        const outcome result = run(completed, expected(completed), {.on = sim});
        ASSERT_TRUE(result.ok()) << result.wrong << "\n" << replay_command(seed, test) << "\n" << to_string(completed);
    }
}

TEST(random_programs_sim, compute_the_same_in_disorder) {
    expect_all_right("random_programs_sim.compute_the_same_in_disorder", false);
}

TEST(random_programs_sim, compute_the_same_under_the_virtual_clock) {
    expect_all_right("random_programs_sim.compute_the_same_under_the_virtual_clock", true);
}

TEST(random_programs_sim, control_without_ordering_they_compute_something_else) {
    watchdog dog("random_programs_sim.control_without_ordering_they_compute_something_else");
    const weir::device sim = weir::sim(8);
    int programs = 0;
    int wrong = 0;
    for_each_serial_seed(20, [&](std::uint64_t seed) {
        dog.start(seed);
        const program completed = complete(for_accelerators(generate(seed)));
        const stripped_program bare = strip(completed, gate_opening::as_written);
        const weir::testing::simulated behaviour(sim, settings_of(seed, true));
        ++programs;
        wrong += run(bare.steps, expected(bare.steps), {.racing = true, .on = sim}).ok() ? 0 : 1;
    });
    std::printf("without ordering %d of %d programs went wrong under the virtual clock\n", wrong, programs);
    if (programs >= 100) {
        EXPECT_GE(wrong * 100, programs * 30);
    }
}

}  // namespace
}  // namespace random_programs
