// Negative controls: the same programs go wrong when what orders them is removed.
#include <gtest/gtest.h>

#include <cstdio>

#include "random_programs/complete.hpp"
#include "random_programs/generate.hpp"
#include "random_programs/interpret.hpp"
#include "random_programs/oracle.hpp"
#include "random_programs/settings.hpp"
#include "random_programs/strip.hpp"

namespace random_programs {
namespace {

TEST(random_programs_control, without_ordering_programs_compute_something_else) {
    watchdog dog("random_programs_control.without_ordering_programs_compute_something_else");
    int programs = 0;
    int racing = 0;
    int racing_wrong = 0;
    int wrong = 0;
    int spread = 0;
    int spread_wrong = 0;
    for_each_serial_seed(5, [&](std::uint64_t seed) {
        dog.start(seed);
        const program completed = complete(generate(seed));
        const stripped_program bare = strip(completed, gate_opening::late);
        const bool failed = !run(bare.steps, expected(bare.steps), {.racing = true}).ok();
        ++programs;
        wrong += failed ? 1 : 0;
        if (bare.overtakings > 0) {
            ++racing;
            racing_wrong += failed ? 1 : 0;
            spread += completed.devices > 1 ? 1 : 0;
            spread_wrong += completed.devices > 1 && failed ? 1 : 0;
        }
    });
    std::printf(
        "without ordering %d of %d programs went wrong; of the %d in which a gate makes it certain, %d; of the %d of "
        "these on several devices, %d\n",
        wrong, programs, racing, racing_wrong, spread, spread_wrong);
    if (programs >= 100) {
        EXPECT_GE(spread * 100, programs * 5);
        EXPECT_GE(spread_wrong * 100, spread * 80);
        EXPECT_GE(racing * 100, programs * 30);
    }
    // Not all: a wrong result of one access may be overwritten before the host looks.
    EXPECT_GE(racing_wrong * 100, racing * 80);
}

TEST(random_programs_control, K4_who_expects_dependents_of_a_failure_to_run_is_wrong) {
    watchdog dog("random_programs_control.K4_who_expects_dependents_of_a_failure_to_run_is_wrong");
    int programs = 0;
    int failing = 0;
    for_each_serial_seed(20, [&](std::uint64_t seed) {
        dog.start(seed);
        const program completed = complete(generate(seed));
        const bool fails = !expected(completed).failed.empty();
        const bool agrees = run(completed, expected(completed, dependents::run)).ok();
        EXPECT_EQ(agrees, !fails) << "seed " << seed;
        ++programs;
        failing += fails ? 1 : 0;
    });
    std::printf("%d of %d programs have operations that fail\n", failing, programs);
    if (programs >= 100) {
        EXPECT_GE(failing * 100, programs * 5);
    }
}

TEST(random_programs_control, without_death_frontiers_programs_compute_something_else) {
    watchdog dog("random_programs_control.without_death_frontiers_programs_compute_something_else");
    int programs = 0;
    int wrong = 0;
    for_each_serial_seed(10, [&](std::uint64_t seed) {
        dog.start(seed);
        program completed = complete(generate_reuse(seed));
        // Enough memory: a pool that is short of it would give memory back to the system that is still written to.
        completed.tight.reset();
        const expectation wanted = expected(completed);
        const outcome right = run(completed, wanted, {.racing = true});
        EXPECT_TRUE(right.ok()) << "seed " << seed << ": " << right.wrong;
        ++programs;
        wrong += run(completed, wanted, {.racing = true, .forget_frontiers = true}).ok() ? 0 : 1;
    });
    std::printf("without death frontiers %d of %d programs went wrong\n", wrong, programs);
    if (programs >= 100) {
        EXPECT_GT(wrong, 0);
    }
}

}  // namespace
}  // namespace random_programs
