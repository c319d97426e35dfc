// Sets of many points (rule O10), compared with a map, and the parts that their copies share.
#include "frontier/point_tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include "frontier/frontier.hpp"
#include "support/scarce_memory.hpp"

namespace {

using weir::frontiers::epoch;
using weir::frontiers::frontier;
using weir::frontiers::point;
using weir::frontiers::point_tree;
using weir::frontiers::timeline_id;
using weir::test::fail_allocation;
using weir::test::live_allocations;

/// Random numbers in the type that is wanted.
struct numbers {
    explicit numbers(unsigned seed) : engine(seed) {}
    std::uint32_t operator()() { return static_cast<std::uint32_t>(engine()); }
    std::mt19937 engine;
};

using plain = std::map<timeline_id, epoch>;

void merge(plain& into, point p) {
    if (p.at > 0) {
        epoch& there = into[p.timeline];
        there = std::max(there, p.at);
    }
}
void merge(plain& into, const plain& other) {
    for (const auto& [timeline, at] : other) {
        merge(into, point{timeline, at});
    }
}

template <class Set>
plain points(const Set& of) {
    plain found;
    std::vector<timeline_id> order;
    of.for_each([&](const point& p) {
        found.emplace(p.timeline, p.at);
        order.push_back(p.timeline);
    });
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    EXPECT_EQ(order.size(), of.size());
    return found;
}

/// Timelines near and far, so that trees of all heights meet.
point random_point(numbers& random) {
    const unsigned width = 1 + random() % 31;
    return {static_cast<timeline_id>(random() & ((1U << width) - 1)), random() % 9};
}

TEST(PointTree, DoesWhatAMapDoes) {
    numbers random(1);
    for (int round = 0; round < 300; ++round) {
        std::vector<point_tree> trees(4);
        std::vector<plain> maps(4);
        for (int step = 0; step < 60; ++step) {
            const std::size_t i = random() % trees.size();
            const std::size_t other = random() % trees.size();
            switch (random() % 4) {
                case 0:
                    trees[i] = trees[other];
                    maps[i] = maps[other];
                    break;
                case 1:
                    trees[i].merge(trees[other]);
                    merge(maps[i], maps[other]);
                    break;
                default: {
                    const point p = random_point(random);
                    trees[i].merge(p);
                    merge(maps[i], p);
                }
            }
            for (std::size_t all = 0; all < trees.size(); ++all) {
                ASSERT_EQ(points(trees[all]), maps[all]) << "round " << round << ", step " << step << ", tree " << all;
            }
            const timeline_id asked = random_point(random).timeline;
            const auto found = maps[i].find(asked);
            ASSERT_EQ(trees[i].at(asked), found == maps[i].end() ? 0 : found->second);
        }
    }
}

TEST(PointTree, AFrontierIsTheSameSetWhateverItsForm) {
    numbers random(2);
    for (int round = 0; round < 300; ++round) {
        frontier one;
        frontier other;
        plain one_map;
        plain other_map;
        for (std::uint32_t added = random() % 80; added > 0; --added) {
            const point p{random() % 90, 1 + random() % 9};
            one.merge(p);
            merge(one_map, p);
        }
        for (std::uint32_t added = random() % 80; added > 0; --added) {
            const point p{random() % 90, 1 + random() % 9};
            other.merge(p);
            merge(other_map, p);
        }
        ASSERT_EQ(points(one), one_map);
        frontier both = one;
        both.merge(other);
        plain both_map = one_map;
        merge(both_map, other_map);
        ASSERT_EQ(points(both), both_map);
        ASSERT_TRUE(both.dominates(one));
        ASSERT_EQ(one == both, one_map == both_map);
        for (const auto& [timeline, at] : both_map) {
            ASSERT_EQ(one.covers({timeline, at}), one_map.contains(timeline) && one_map.at(timeline) >= at);
        }
        const auto complete = [](const point& p) { return p.at <= 4; };
        both.prune(complete);
        std::erase_if(both_map, [&](const auto& p) { return complete({p.first, p.second}); });
        ASSERT_EQ(points(both), both_map);
    }
}

frontier many_points() {
    frontier made;
    for (timeline_id i = 0; i < 1000; ++i) {
        made.merge(point{i, 1 + i % 2});
    }
    return made;
}

TEST(PointTree, WhatIsCompleteIsDroppedSoonerOrLater) {
    frontier f = many_points();
    f.prune_at_times([](const point& p) { return p.at == 1; });
    EXPECT_EQ(f.size(), 500U);
    EXPECT_FALSE(f.covers({0, 1}));
    EXPECT_TRUE(f.covers({1, 2}));
    // No more points complete for a while; then all do.
    for (int i = 0; i < 3000; ++i) {
        f.prune_at_times([](const point&) { return false; });
    }
    EXPECT_EQ(f.size(), 500U);
    int more = 0;
    while (!f.empty()) {
        f.prune_at_times([](const point&) { return true; });
        ASSERT_LE(++more, 2000) << "four merges for each point";
    }
}

TEST(PointTree, LookingForWhatIsCompleteCostsEachMergeLittle) {
    frontier f = many_points();
    std::size_t asked = 0;
    constexpr std::size_t merges = 50'000;
    for (std::size_t i = 0; i < merges; ++i) {
        f.prune_at_times([&](const point&) {
            ++asked;
            return false;
        });
    }
    EXPECT_GT(asked, 0U);
    EXPECT_LT(asked, merges);
}

// A chain through N streams: every operation is ordered after all before it, and each has a frontier of its own.
TEST(PointTree, AChainThroughManyStreamsTakesLittleMemory) {
    constexpr timeline_id streams = 5000;
    const long before = live_allocations();
    std::thread([&] {  // the memory that a thread keeps for reuse goes with the thread
        std::vector<frontier> known(1);
        known.reserve(streams);
        for (timeline_id i = 1; i < streams; ++i) {
            frontier next;
            next.merge(known.back());
            next.merge(point{i - 1, 1});
            known.push_back(std::move(next));
        }
        EXPECT_EQ(known.back().size(), streams - 1);
        EXPECT_LT(live_allocations() - before, 6L * streams) << "a path of nodes for each, and what holds it";
        EXPECT_EQ(points(known[100]).size(), 100U) << "and the earlier ones stay what they were";
    })
        .join();
    EXPECT_EQ(live_allocations(), before);
}

TEST(PointTree, WhereMemoryRunsOutTheSetStaysAsItWas) {
    numbers random(3);
    point_tree one;
    point_tree other;
    for (int i = 0; i < 200; ++i) {
        one.merge(random_point(random));
        other.merge(random_point(random));
    }
    const plain one_map = points(one);
    const plain other_map = points(other);
    const long live = live_allocations();
    const auto try_all = [&](auto&& change) {
        bool done = false;
        for (long nth = 1; !done; ++nth) {
            point_tree changed = one;
            fail_allocation(nth);
            try {
                change(changed);
                done = true;
            } catch (const std::bad_alloc&) {
                EXPECT_EQ(points(changed), one_map);
            }
            fail_allocation(0);
            EXPECT_EQ(points(one), one_map);
            EXPECT_EQ(points(other), other_map);
        }
        EXPECT_EQ(live_allocations(), live);
    };
    try_all([&](point_tree& x) { x.merge(other); });
    try_all([&](point_tree& x) { x.merge(point{0xfffffff0, 77}); });
    try_all([&](point_tree& x) { x.merge(point{1, 77}); });
}

}  // namespace
