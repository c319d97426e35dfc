// Rule O10: with watermarks that advance, frontiers and histories stay small however long a program runs.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>

#include "order_driver.hpp"

namespace order_test {
namespace {

constexpr recipe long_program{.steps = 20'000, .streams = 40, .modes = true};

drive_sizes sizes_of(const program& p, bool completion) {
    drive_options how{.completion = completion, .pace = 4 * p.streams.size(), .seed = 7};
    for (std::size_t s = 0; s < p.streams.size(); ++s) {
        // Not the first timelines, whose points are always kept, since they take no memory.
        how.names.push_back(weir::order::frontier::direct + static_cast<weir::order::timeline_id>(s));
    }
    driver d{p, how};
    d.run();
    return d.sizes();
}

TEST(O10, FrontiersAndHistoriesStayBounded) {
    for (std::uint64_t seed = 2; seed <= 6; ++seed) {
        const program p = random_program(long_program, seed);
        const drive_sizes sizes = sizes_of(p, true);
        std::printf("%zu steps on %zu streams: clocks up to %zu points, histories up to %zu accesses\n", p.steps.size(),
                    p.streams.size(), sizes.clock, sizes.history);
        EXPECT_EQ(sizes.clock_over_needed, 0U)
            << "a clock has no more points than timelines have unfinished work, or than take no memory";
        EXPECT_LT(sizes.clock, 10U) << "and with a device that keeps up, few have";
        EXPECT_LE(sizes.history, weir::order::history::bound + p.streams.size());
    }
}

TEST(O10, WithoutWatermarksOnlyTheTimelinesBoundThem) {
    const program p = random_program(long_program, 5);
    const drive_sizes sizes = sizes_of(p, false);
    EXPECT_GE(sizes.clock, p.streams.size() - 1) << "negative control: the clocks hold every other timeline";
    EXPECT_LE(sizes.history, weir::order::history::bound + p.streams.size());
}

}  // namespace
}  // namespace order_test
