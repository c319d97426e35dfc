// Programs that share memory with other libraries have the results of their steps, computed one after the other.
#include <gtest/gtest.h>

#include <cstdint>

#include "sharing_programs/program.hpp"
#include "sharing_programs/seeds.hpp"

namespace sharing_programs {
namespace {

/// The programs contain enough cases in which order matters.
void expect_all_kinds(const counts& seen, std::uint32_t programs) {
    const auto often = [&](int count, int in_ten) { return count * 10 >= static_cast<int>(programs) * in_ten; };
    EXPECT_TRUE(often(seen.foreign, 50)) << seen.foreign;
    EXPECT_TRUE(often(seen.entries, 50)) << seen.entries;
    EXPECT_TRUE(often(seen.on_queues, 10)) << seen.on_queues;
    EXPECT_TRUE(often(seen.gates, 20)) << seen.gates;
    EXPECT_TRUE(often(seen.ended, 1)) << seen.ended;
    EXPECT_TRUE(often(seen.renewed, 5)) << seen.renewed;
    EXPECT_TRUE(often(seen.waits, 10)) << seen.waits;
    EXPECT_TRUE(often(seen.host_reads, 10)) << seen.host_reads;
}

class SharingPrograms : public ::testing::TestWithParam<weir::device (*)()> {};

weir::device first_sim() { return weir::sim(0); }
INSTANTIATE_TEST_SUITE_P(On, SharingPrograms, ::testing::Values(&weir::cpu, &first_sim),
                         [](const auto& one) { return one.param == &weir::cpu ? "cpu" : "sim"; });

TEST_P(SharingPrograms, X6_X7_resultsAreThoseOfTheStepsOneAfterTheOther) {
    counts all;
    for (std::uint32_t seed = 0; seed < programs(150); ++seed) {
        program one(seed, ordered_by::weir, GetParam()());
        ASSERT_EQ(one.run(true), "") << "seed " << seed;
        all += one.seen();
    }
    expect_all_kinds(all, programs(150));
}

TEST_P(SharingPrograms, ControlWithoutOrderTheyAreNot) {
    int wrong = 0;
    for (std::uint32_t seed = 0; seed < 100; ++seed) {
        wrong += program(seed, ordered_by::nobody, GetParam()()).run(false).empty() ? 0 : 1;
    }
    EXPECT_GT(wrong, 50);
}

}  // namespace
}  // namespace sharing_programs
