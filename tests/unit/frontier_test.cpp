// Frontiers: sets of points in time, and what it means to be at or before one (rule O10).
#include "frontier/frontier.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <random>
#include <vector>

namespace {

using weir::frontiers::epoch;
using weir::frontiers::frontier;
using weir::frontiers::point;
using weir::frontiers::timeline_id;

frontier of(std::initializer_list<point> points) {
    frontier made;
    for (const point& p : points) {
        made.merge(p);
    }
    return made;
}

TEST(Frontier, AbsentTimelineIsNotCovered) {
    const frontier f = of({{2, 7}});
    EXPECT_EQ(f.at(1), 0U);
    EXPECT_FALSE(f.covers({1, 1}));
    EXPECT_FALSE(f.covers({3, 1}));
}

TEST(Frontier, CoversEverythingAtOrBeforeItsPoints) {
    const frontier f = of({{2, 7}});
    EXPECT_TRUE(f.covers({2, 1}));
    EXPECT_TRUE(f.covers({2, 7}));
    EXPECT_FALSE(f.covers({2, 8}));
}

TEST(Frontier, EpochZeroIsBeforeEverything) {
    frontier f;
    EXPECT_TRUE(f.covers({5, 0}));
    f.merge(point{5, 0});
    EXPECT_TRUE(f.empty()) << "a point before everything adds nothing";
}

TEST(Frontier, MergeOfAPointKeepsTheLargerEpoch) {
    frontier f = of({{1, 5}});
    f.merge(point{1, 3});
    EXPECT_EQ(f.at(1), 5U);
    f.merge(point{1, 9});
    EXPECT_EQ(f.at(1), 9U);
    EXPECT_EQ(f.size(), 1U);
}

TEST(Frontier, MergeKeepsTheLargerOfTwoClocks) {
    frontier a = of({{1, 5}, {2, 2}, {7, 1}});
    const frontier b = of({{0, 4}, {1, 3}, {2, 8}});
    a.merge(b);
    EXPECT_EQ(a, of({{0, 4}, {1, 5}, {2, 8}, {7, 1}}));
}

// All pairs of clocks of three timelines: with the same timelines, with some in common, with none.
TEST(Frontier, MergeIsTheLargerOfEachOfAllSmallClocks) {
    constexpr epoch most = 3;
    std::vector<std::array<epoch, 3>> all;
    for (epoch i = 0; i < most * most * most; ++i) {
        all.push_back({i % most, i / most % most, i / most / most});
    }
    for (const timeline_id base : {timeline_id{0}, frontier::direct - 2, frontier::direct}) {
        const auto clock_of = [base](const std::array<epoch, 3>& epochs) {
            frontier made;
            for (timeline_id line = 0; line < 3; ++line) {
                made.merge(point{base + line, epochs[line]});
            }
            return made;
        };
        for (const auto& a : all) {
            for (const auto& b : all) {
                frontier merged = clock_of(a);
                merged.merge(clock_of(b));
                for (timeline_id line = 0; line < 3; ++line) {
                    EXPECT_EQ(merged.at(base + line), std::max(a[line], b[line]));
                }
            }
        }
    }
}

TEST(Frontier, MergeDoesNotDependOnTheOrder) {
    const frontier a = of({{1, 5}, {3, 2}});
    const frontier b = of({{1, 6}, {2, 1}});
    frontier ab = a;
    ab.merge(b);
    frontier ba = b;
    ba.merge(a);
    EXPECT_EQ(ab, ba);
    frontier again = ab;
    again.merge(a);
    EXPECT_EQ(again, ab) << "what is covered already adds nothing";
}

TEST(Frontier, MergeWithEmptyChangesNothing) {
    frontier a = of({{1, 5}});
    a.merge(frontier{});
    EXPECT_EQ(a, of({{1, 5}}));
    frontier b;
    b.merge(a);
    EXPECT_EQ(b, a);
}

TEST(Frontier, MergeWithItself) {
    frontier a = of({{1, 5}, {2, 6}});
    a.merge(a);
    EXPECT_EQ(a, of({{1, 5}, {2, 6}}));
}

TEST(Frontier, PointsAreSortedByTimelineHoweverTheyCome) {
    const frontier f = of({{9, 1}, {0, 2}, {4, 3}, {0, 1}});
    std::vector<point> points;
    f.for_each([&](const point& p) { points.push_back(p); });
    EXPECT_EQ(points, (std::vector<point>{{0, 2}, {4, 3}, {9, 1}}));
}

TEST(Frontier, DominatesWhenEveryPointIsCovered) {
    const frontier big = of({{1, 5}, {2, 5}, {3, 5}});
    EXPECT_TRUE(big.dominates(of({{1, 5}, {3, 4}})));
    EXPECT_TRUE(big.dominates(frontier{}));
    EXPECT_TRUE(big.dominates(big));
    EXPECT_TRUE(frontier{}.dominates(frontier{}));
}

TEST(Frontier, DoesNotDominateALaterEpochOrAnAbsentTimeline) {
    const frontier f = of({{1, 5}, {3, 5}});
    EXPECT_FALSE(f.dominates(of({{1, 6}})));
    EXPECT_FALSE(f.dominates(of({{0, 1}})));
    EXPECT_FALSE(f.dominates(of({{2, 1}})));
    EXPECT_FALSE(f.dominates(of({{1, 5}, {4, 1}})));
    EXPECT_FALSE(frontier{}.dominates(f));
}

TEST(Frontier, TwoCanBeUnordered) {
    const frontier a = of({{1, 5}, {2, 1}});
    const frontier b = of({{1, 4}, {2, 2}});
    EXPECT_FALSE(a.dominates(b));
    EXPECT_FALSE(b.dominates(a));
}

TEST(O10, PruneDropsWhatIsComplete) {
    frontier f = of({{1, 5}, {2, 3}, {3, 9}, {40, 5}, {41, 3}, {42, 9}});
    f.prune([](const point& p) { return p.at <= 5; });
    EXPECT_EQ(f, of({{3, 9}, {42, 9}}));
}

// A set that is kept in any one way, or in several at once, is the same set: compared with a map.
TEST(Frontier, IsTheSameSetWhereverItsTimelinesLie) {
    std::mt19937 random(7);
    const auto any = [&](unsigned below) { return static_cast<unsigned>(random() % below); };
    for (const timeline_id reach : {3U, 12U, frontier::direct, frontier::direct + 4, 40U, 200U}) {
        for (int round = 0; round < 200; ++round) {
            std::array<frontier, 2> sets;
            std::array<std::map<timeline_id, epoch>, 2> expected;
            const unsigned points = any(2 * reach);
            for (unsigned i = 0; i < points; ++i) {
                const unsigned which = any(2);
                const point p{any(reach), any(9)};
                sets[which].merge(p);
                expected[which][p.timeline] = std::max(expected[which][p.timeline], p.at);
            }
            if (any(2) == 0) {
                const epoch over = any(9);
                sets[1].prune([&](const point& p) { return p.at <= over; });
                std::erase_if(expected[1], [&](const auto& one) { return one.second <= over; });
            }
            frontier merged = sets[0];
            merged.merge(sets[1]);
            bool dominates = true;
            for (const auto& [timeline, at] : expected[1]) {
                dominates = dominates && at <= expected[0][timeline];
                expected[0][timeline] = std::max(expected[0][timeline], at);
            }
            std::erase_if(expected[0], [](const auto& one) { return one.second == 0; });
            std::map<timeline_id, epoch> found;
            timeline_id last = 0;
            merged.for_each([&](const point& p) {
                EXPECT_TRUE(found.empty() || last < p.timeline);
                last = p.timeline;
                found[p.timeline] = p.at;
            });
            ASSERT_EQ(found, expected[0]) << "of timelines below " << reach;
            frontier again;
            again.merge(merged);
            ASSERT_EQ(again, merged);
            ASSERT_EQ(merged.size(), found.size());
            ASSERT_EQ(merged.empty(), found.empty());
            ASSERT_EQ(sets[0].dominates(sets[1]), dominates);
            ASSERT_EQ(merged == sets[0], dominates);
            for (timeline_id i = 0; i < reach; ++i) {
                const auto at = expected[0].find(i);
                ASSERT_EQ(merged.at(i), at == expected[0].end() ? 0 : at->second);
            }
        }
    }
}

}  // namespace
