// Random programs: all schedules that the waits allow see what the serial program sees, and no wait is one too many.
#include <gtest/gtest.h>

#include <cstdint>

#include "order_census.hpp"
#include "order_driver.hpp"
#include "order_oracle.hpp"
#include "order_settings.hpp"

namespace order_test {
namespace {

TEST(O10, WaitsSufficeAndAreTheMinimum) {
    census seen{"exact"};
    for_each_seed(1, [&](std::uint64_t seed) {
        const program p = random_program({}, seed);
        const outcome done = drive(p);
        const verdict v = oracle{p}.exact(done);
        seen.count(v);
        EXPECT_EQ(v.wrong, "") << replay(seed) << describe(p) << describe(done);
        return v.wrong.empty();
    });
    seen.report(own_kinds);
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

}  // namespace
}  // namespace order_test
