// Random programs: on all schedules that the waits allow, operations see what they see in the serial program, and no wait is superfluous.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>

#include "order_census.hpp"
#include "order_driver.hpp"
#include "order_oracle.hpp"
#include "order_settings.hpp"

namespace order_test {
namespace {

TEST(O10, WaitsSufficeAndAreTheMinimum) {
    census seen{"exact"};
    int programs = 0;
    int short_plans = 0;
    for_each_seed(1, [&](std::uint64_t seed) {
        const program p = random_program({}, seed);
        const outcome done = drive(p);
        ++programs;
        short_plans += done.short_plans;
        const verdict v = oracle{p}.exact(done);
        seen.count(v);
        EXPECT_EQ(v.wrong, "") << replay(seed) << describe(p) << describe(done);
        return v.wrong.empty();
    });
    seen.report(own_kinds);
    EXPECT_TRUE(programs < 100 || short_plans > programs / 2) << short_plans << " of " << programs;
}

TEST(O10, WaitsSufficeWhenWhatIsOverCountsAsOrdered) {
    census seen{"with completion"};
    for_each_seed(1, [&](std::uint64_t seed) {
        const program p = random_program({}, seed);
        const outcome done = drive(p, {.completion = true, .seed = seed});
        const verdict v = oracle{p}.sufficient(done);
        seen.count(v);
        EXPECT_EQ(v.wrong, "") << replay(seed) << describe(p) << describe(done);
        return v.wrong.empty();
    });
    seen.report(own_kinds);
}

constexpr recipe many_reads{
    .steps = 16, .buffers = 1, .cells = 32, .touches = 90, .writes = 2, .modes = false, .reuse = false};

// Operations that read many single bytes, so that a history holds more than its bound and accesses merge.
TEST(O3, WaitsSufficeBeyondTheBound) {
    int programs = 0;
    int merging = 0;
    for_each_seed(50, [&](std::uint64_t seed) {
        const program p = random_program(many_reads, seed);
        driver d{p, {}};
        const outcome done = d.run();
        const verdict v = oracle{p}.sufficient(done);
        EXPECT_EQ(v.wrong, "") << replay(seed) << describe(p) << describe(done);
        ++programs;
        merging += d.sizes().history >= weir::order::history::bound ? 1 : 0;
        return v.wrong.empty();
    });
    std::printf("%d programs, %d of which reach the bound\n", programs, merging);
    EXPECT_TRUE(programs < 100 || merging > 0);
}

}  // namespace
}  // namespace order_test
