// What check reports of programs that share memory with other libraries, and what weir-verify reports of their logs, compared
// with a model of the order (rules V1, V4).
#include <gtest/gtest.h>

#include <cstdio>

#include "sharing_programs/program.hpp"
#include "sharing_programs/seeds.hpp"
#include "support/evidence.hpp"
#include "support/step_pairs.hpp"

namespace sharing_programs {
namespace {

namespace audit = weir_verify;
using weir::test::audited;
using weir::test::compare_pairs;
using weir::test::is_proved;
using weir::test::noted;
using weir::test::order_races;
using weir::test::own_order_only;
using weir::test::pairs_of;
using weir::test::take_out_what_weir_did;

/// The differences between a check's report and the model; empty if they agree. Under check a program is safe in every ordering
/// mode.
std::string checked(std::uint32_t seed, ordered_by who, bool assume_manual, std::size_t& races) {
    const weir::check_scope check({.assume_manual = assume_manual});
    program one(seed, who);
    const std::string wrong = one.run(true);
    const weir::report found = check.report();
    const order& model = assume_manual ? one.own_order() : one.all_order();
    races += pairs_of(found, order_races).size();
    return wrong + compare_pairs(pairs_of(found, order_races), pairs_of(found), model.pairs());
}

class SharingProgramsCheck : public ::testing::TestWithParam<std::pair<ordered_by, bool>> {};

TEST_P(SharingProgramsCheck, V1_exactlyTheUnorderedPairsAreReported) {
    const auto [who, assume_manual] = GetParam();
    std::size_t races = 0;
    for (std::uint32_t seed = 0; seed < programs(150); ++seed) {
        ASSERT_EQ(checked(seed, who, assume_manual, races), "") << "seed " << seed;
    }
    std::printf("%zu races\n", races);
    EXPECT_EQ(races == 0, who == ordered_by::weir && !assume_manual) << races;
}

INSTANTIATE_TEST_SUITE_P(All, SharingProgramsCheck,
                         ::testing::Values(std::pair(ordered_by::weir, false), std::pair(ordered_by::weir, true),
                                           std::pair(ordered_by::nobody, false), std::pair(ordered_by::mixture, false),
                                           std::pair(ordered_by::mixture, true)));

TEST(SharingProgramsLogs, V4_theirLogsProveTheOrder) {
    std::uint64_t waits = 0;
    for (std::uint32_t seed = 0; seed < programs(50); ++seed) {
        const noted trace;
        ASSERT_EQ(program(seed, ordered_by::weir).run(true), "") << "seed " << seed;
        const std::string log = trace.text();
        const audit::auditor auditor = audited(log, {});
        ASSERT_TRUE(is_proved(auditor, log)) << "seed " << seed;
        waits += auditor.summary().waits;
    }
    EXPECT_GT(waits, 100U);
}

class SharingProgramsVerify : public ::testing::TestWithParam<ordered_by> {};

TEST_P(SharingProgramsVerify, V4_withoutWeirsWaitsExactlyWhatTheProgramLeavesUnorderedIsFound) {
    std::size_t races = 0;
    for (std::uint32_t seed = 0; seed < programs(100); ++seed) {
        const noted trace;
        program one(seed, GetParam());
        // The results are right only by chance, unless Weir orders the program.
        static_cast<void>(one.run(false));
        const std::string log = trace.text();
        // Where the program orders, the verifier finds nothing wrong; what is left to Weir is in order.
        ASSERT_EQ(audited(log, {}).found().count(audit::severity::violation), 0U) << "seed " << seed << "\n" << log;
        const auto found = pairs_of(audited(log, own_order_only, take_out_what_weir_did).found());
        ASSERT_EQ(compare_pairs(found, found, one.own_order().pairs()), "") << "seed " << seed << "\n" << log;
        races += found.size();
    }
    std::printf("%zu pairs\n", races);
    EXPECT_GT(races, 100U);
}

INSTANTIATE_TEST_SUITE_P(All, SharingProgramsVerify,
                         ::testing::Values(ordered_by::weir, ordered_by::nobody, ordered_by::mixture));

}  // namespace
}  // namespace sharing_programs
