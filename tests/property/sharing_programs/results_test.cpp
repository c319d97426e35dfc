// Programs whose memory other libraries work on, too, compute what their steps give one after the other.
#include <gtest/gtest.h>

#include "sharing_programs/program.hpp"
#include "sharing_programs/seeds.hpp"

namespace sharing_programs {
namespace {

void expect_all_kinds(const counts& seen) {
    EXPECT_GT(seen.foreign, 100);
    EXPECT_GT(seen.entries, 100);
    EXPECT_GT(seen.on_queues, 20);
    EXPECT_GT(seen.gates, 100);
    EXPECT_GT(seen.ended, 10);
    EXPECT_GT(seen.renewed, 10);
    EXPECT_GT(seen.waits, 50);
    EXPECT_GT(seen.host_reads, 50);
}

TEST(SharingPrograms, X6_X7_resultsAreThoseOfTheStepsOneAfterTheOther) {
    counts all;
    for (std::uint32_t seed = 0; seed < programs(150); ++seed) {
        program one(seed, ordered_by::weir);
        ASSERT_EQ(one.run(true), "") << "seed " << seed;
        all += one.seen();
    }
    expect_all_kinds(all);
}

TEST(SharingPrograms, ControlWithoutOrderTheyAreNot) {
    int wrong = 0;
    for (std::uint32_t seed = 0; seed < 100; ++seed) {
        wrong += program(seed, ordered_by::nobody).run(false).empty() ? 0 : 1;
    }
    EXPECT_GT(wrong, 50);
}

}  // namespace
}  // namespace sharing_programs
