// Packages that share memory with Weir and put work into streams that Weir never sees (rules X6, X7, O2).
#include <gtest/gtest.h>

#include <cstdint>

#include "order_census.hpp"
#include "order_driver.hpp"
#include "order_oracle.hpp"
#include "order_settings.hpp"

namespace order_test {
namespace {

TEST(X6, WaitsSufficeWithWorkThatWeirNeverSees) {
    census seen{"packages"};
    for_each_seed(1, [&](std::uint64_t seed) {
        const program p = random_program({.steps = 10, .packages = true}, seed);
        const bool completion = seed % 2 == 0;
        const outcome done = drive(p, {.completion = completion, .seed = seed});
        const verdict v = oracle{p}.sufficient(done);
        seen.count(v);
        EXPECT_EQ(v.wrong, "") << replay(seed) << describe(p) << describe(done);
        return v.wrong.empty();
    });
    seen.report(own_kinds | entry | exit);
}

// A package writes x on stream 0, Weir reads it on stream 1; and once more. What Weir knows about the first entry says
// nothing about the work that the package has enqueued since.
program two_entries() {
    program p;
    p.streams.assign(2, order_by::silent);
    p.packages = {0};
    p.buffers = {{0, 4, order_by::silent, {}, 1}};
    for (int i = 0; i < 2; ++i) {
        step theirs;
        theirs.what = action::foreign;
        theirs.package = 0;
        theirs.touches = {{0, 0, 4, true}};
        p.steps.push_back(theirs);
        step ours;
        ours.stream = 1;
        ours.touches = {{0, 0, 4, false}};
        p.steps.push_back(ours);
    }
    return p;
}

TEST(O2, ElisionNeverSpansTwoEntries) {
    const program p = two_entries();
    const outcome fresh = drive(p);
    EXPECT_EQ(oracle{p}.sufficient(fresh).wrong, "");
    EXPECT_EQ(fresh.waits.size(), 4U) << "an entry and an exit, twice";

    const outcome stale = drive(p, {.planted = fault::stale_entry});
    EXPECT_NE(oracle{p}.sufficient(stale).wrong, "") << "negative control";
    const outcome open = drive(p, {.planted = fault::no_exit});
    EXPECT_NE(oracle{p}.sufficient(open).wrong, "") << "negative control";
}

TEST(X6, OneStreamForAllCostsNothing) {
    for_each_seed(10, [](std::uint64_t seed) {
        program p = random_program({.modes = false, .packages = true}, seed);
        for (step& at : p.steps) {
            at.stream = at.stream > 0 ? 0 : at.stream;
            at.object = at.what == action::wait_stream ? 0 : at.object;
        }
        p.packages.assign(p.packages.size(), 0);
        EXPECT_TRUE(drive(p).waits.empty()) << replay(seed) << describe(p);
        return !::testing::Test::HasFailure();
    });
}

// The streams of several devices are timelines like any others: the device of a stream does not change a single wait.
TEST(O1, StreamsOfSeveralDevicesAreOrderedLikeThoseOfOne) {
    for_each_seed(5, [](std::uint64_t seed) {
        const program p = random_program({.packages = seed % 2 == 0}, seed);
        drive_options spread;
        for (std::size_t s = 0; s < p.streams.size(); ++s) {
            const auto device = static_cast<weir::order::timeline_id>(s % 2);
            const auto index = static_cast<weir::order::timeline_id>(p.streams.size() - s);
            spread.names.push_back(1'000 * (1 - device) + index);  // neither near one another nor in order
        }
        EXPECT_EQ(describe(drive(p, spread)), describe(drive(p))) << replay(seed) << describe(p);
        return !::testing::Test::HasFailure();
    });
}

}  // namespace
}  // namespace order_test
