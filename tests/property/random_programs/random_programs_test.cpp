// Random programs have the results of the same steps, computed one after the other.
#include <gtest/gtest.h>

#include <cstdio>

#include "random_programs/census.hpp"
#include "random_programs/complete.hpp"
#include "random_programs/generate.hpp"
#include "random_programs/interpret.hpp"
#include "random_programs/oracle.hpp"
#include "random_programs/settings.hpp"
#include "random_programs/shrink.hpp"

namespace random_programs {
namespace {

outcome run_completed(const program& completed) { return run(completed, expected(completed)); }

/// A short description of the program, and how to run it again. A race does not show each time: a smaller program counts as failing
/// if it fails once in a few runs.
std::string explain(const program& raw, const std::string& wrong, const std::string& test) {
    const auto fails = [](const program& smaller) {
        const program completed = complete(smaller);
        for (int tries = 0; tries < 3; ++tries) {
            if (!run_completed(completed).ok()) {
                return true;
            }
        }
        return false;
    };
    const program smallest = complete(shrink(raw, fails));
    const outcome again = run_completed(smallest);
    return wrong + "\n" + replay_command(raw.seed, test) + "\nsmallest program found (" +
           (again.ok() ? "right this time" : again.wrong) + "):\n" + to_string(smallest);
}

TEST(random_programs, compute_what_the_serial_program_computes) {
    const std::string name = "random_programs.compute_what_the_serial_program_computes";
    census counted;
    watchdog dog(name);
    for (std::uint64_t i = 0; i < wanted_programs(); ++i) {
        const std::uint64_t seed = first_seed() + i;
        dog.start(seed);
        const program raw = generate(seed);
        const program completed = complete(raw);
        if (is_replay()) {
            std::printf("%s", to_string(completed).c_str());
        }
        const expectation wanted = expected(completed);
        const outcome result = run(completed, wanted);
        if (!result.ok()) {
            ADD_FAILURE() << explain(raw, result.wrong, name);
            break;
        }
        counted.count(completed, wanted, result.reuses);
    }
    std::printf("seeds from %llu: %s", static_cast<unsigned long long>(first_seed()), counted.to_string().c_str());
    if (counted.programs() < 500) {
        return;
    }
    EXPECT_GE(counted.with_hazard_between_streams() * 100, counted.programs() * 30);
    EXPECT_EQ(counted.rare_features(), "");
    for (int kind = 0; kind < hazards; ++kind) {
        EXPECT_GT(counted.with(static_cast<hazard>(kind)), 0) << name_of(static_cast<hazard>(kind));
    }
    for (int kind = 0; kind < shapes; ++kind) {
        EXPECT_GT(counted.with(static_cast<shape>(kind)), 0) << name_of(static_cast<shape>(kind));
    }
    for (std::size_t kind = 0; kind < step_kinds; ++kind) {
        EXPECT_GT(counted.with(static_cast<step_kind>(kind)), 0) << name_of(static_cast<step_kind>(kind));
    }
}

}  // namespace
}  // namespace random_programs
