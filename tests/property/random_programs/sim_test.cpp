// The same random programs on simulated accelerators, whose streams reorder work more than those of the CPU do.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <vector>

#include "random_programs/complete.hpp"
#include "random_programs/generate.hpp"
#include "random_programs/interpret.hpp"
#include "random_programs/oracle.hpp"
#include "random_programs/settings.hpp"
#include "random_programs/strip.hpp"
#include "weir/testing.hpp"

namespace random_programs {
namespace {

/// The program without what only the host can do: completing it leaves out what the host cannot do with memory that it does
/// not reach, which is to change it in place, and to keep a view of it.
program for_accelerators(program raw) {
    raw.has_host = false;
    for (auto& phase : raw.phases) {
        for (auto& steps : phase) {
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

using accelerators = std::array<weir::device, most_devices>;

/// Each accelerator behaves as its settings say, while this lives.
class behaviours {
public:
    behaviours(const accelerators& all, std::uint64_t seed, bool virtual_clock) {
        for (const weir::device& one : all) {
            all_.push_back(std::make_unique<weir::testing::simulated>(one, settings_of(seed++, virtual_clock)));
        }
    }

private:
    std::vector<std::unique_ptr<weir::testing::simulated>> all_;
};

void expect_all_right(const char* test, bool virtual_clock) {
    watchdog dog(test);
    const int first = virtual_clock ? 8 : 11;
    const accelerators on{weir::sim(first), weir::sim(first + 1), weir::sim(first + 2)};
    for (std::uint64_t i = 0; i < wanted_programs(10); ++i) {
        const std::uint64_t seed = first_seed() + i;
        dog.start(seed);
        const program completed = complete(for_accelerators(generate(seed)));
        const behaviours hostile(on, seed, virtual_clock);
        const outcome result = run(completed, expected(completed), {.on = on});
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
    const accelerators on{weir::sim(8), weir::sim(9), weir::sim(10)};
    int programs = 0;
    int wrong = 0;
    for_each_serial_seed(20, [&](std::uint64_t seed) {
        dog.start(seed);
        const program completed = complete(for_accelerators(generate(seed)));
        const stripped_program bare = strip(completed, gate_opening::as_written);
        const behaviours hostile(on, seed, true);
        ++programs;
        wrong += run(bare.steps, expected(bare.steps), {.racing = true, .on = on}).ok() ? 0 : 1;
    });
    std::printf("without ordering %d of %d programs went wrong under the virtual clock\n", wrong, programs);
    if (programs >= 100) {
        EXPECT_GE(wrong * 100, programs * 30);
    }
}

}  // namespace
}  // namespace random_programs
