// The pool's core: which memory a stream gets, and what its first accesses must come after (rule L1). Streams are timelines
// that the tests advance by hand.
#include "memory_support.hpp"

namespace weir::memory::test {
namespace {

using frontiers::point;

class L1Reuse : public PoolTest {};

TEST_F(L1Reuse, AStreamGetsItsLastMemoryBackWithoutAWait) {
    block& first = get(1000, 1);
    std::byte* const address = first.address;
    use(first, mark_at(1, 1));
    drop(first);  // still in use
    block& second = get(900, 1);
    EXPECT_EQ(second.address, address);
    EXPECT_TRUE(waits_of(second, 1).empty());
    drop(second);
    EXPECT_EQ(driver.calls, 1);
}

TEST_F(L1Reuse, AnotherStreamGetsOtherMemoryWhileItIsInUse) {
    block& first = get(1000, 1);
    std::byte* const address = first.address;
    use(first, mark_at(1, 1));
    drop(first);
    block& second = get(1000, 2);
    EXPECT_NE(second.address, address);
    EXPECT_TRUE(waits_of(second, 2).empty());
    drop(second);
}

TEST_F(L1Reuse, WhatASecondStreamUsedLastIsTheSecondStreams) {
    block& first = get(1000, 1);
    drop(get(1000, 2));  // stream 2 is known from now on
    std::byte* const address = first.address;
    use(first, mark_at(1, 1));
    use(first, mark_at(2, 1, {{1, 1}}));
    drop(first);
    block& second = get(1000, 2);
    EXPECT_EQ(second.address, address);
    EXPECT_TRUE(waits_of(second, 2, {{1, 1}}).empty());
    block& third = get(1000, 1);
    EXPECT_NE(third.address, address);
    drop(second);
    drop(third);
}

TEST_F(L1Reuse, AStreamThatDominatesTheDeathFrontierGetsIt) {
    tested.set_limit(2 * mib);
    block& all = get(2 * mib, 1);
    use(all, mark_at(1, 7));
    use(all, mark_at(3, 2));  // unordered with the other: manual ordering
    drop(all);
    block& half = get(mib, 2, {{1, 7}, {3, 2}});
    EXPECT_TRUE(waits_of(half, 2, {{1, 7}, {3, 2}}).empty());
    drop(half);
    completed.set(1, 7);
    completed.set(3, 2);
}

TEST_F(L1Reuse, CompleteMemoryIsForEveryStream) {
    tested.set_limit(2 * mib);
    block& all = get(2 * mib, 1);
    use(all, mark_at(1, 1));
    use(all, mark_at(3, 1));
    drop(all);
    completed.set(1, 1);
    completed.set(3, 1);
    block& again = get(2 * mib, 2);
    EXPECT_TRUE(waits_of(again, 2).empty());
    drop(again);
}

TEST_F(L1Reuse, WhenMemoryIsShortTheStreamWillWaitOnTheDevice) {
    tested.set_limit(2 * mib);
    block& all = get(2 * mib, 1);
    use(all, mark_at(1, 1));
    drop(all);
    block& again = get(2 * mib, 2);
    EXPECT_EQ(waits_of(again, 2), (std::vector<point>{{1, 1}}));
    EXPECT_EQ(driver.calls, 1);
    drop(again);
}

TEST_F(L1Reuse, TheFewestWaitsArePreferred) {
    tested.set_limit(2 * mib);
    block& one = get(mib, 1);
    block& two = get(mib, 1);
    use(one, mark_at(1, 1));
    use(one, mark_at(4, 1));
    use(two, mark_at(1, 2));
    std::byte* const address = two.address;
    drop(one);
    drop(two);
    block& again = get(mib, 2);
    EXPECT_EQ(again.address, address);
    EXPECT_EQ(waits_of(again, 2), (std::vector<point>{{1, 2}}));
    drop(again);
}

TEST_F(L1Reuse, AnOwnerThatNeverUsedItPassesTheFrontierOn) {
    // Three streams: 1 frees what it still uses, 2 takes it and drops it untouched, 3 gets it.
    tested.set_limit(2 * mib);
    block& first = get(2 * mib, 1);
    use(first, mark_at(1, 1));
    drop(first);
    drop(get(2 * mib, 2));
    block& third = get(2 * mib, 3);
    EXPECT_EQ(waits_of(third, 3), (std::vector<point>{{1, 1}}));
    drop(third);
}

TEST_F(L1Reuse, AnOwnerThatUsedAPartPassesBothFrontiersOn) {
    tested.set_limit(2 * mib);
    block& first = get(2 * mib, 1);
    use(first, mark_at(1, 1));
    drop(first);
    block& second = get(2 * mib, 2);
    second.history.reserve(1);
    second.history.record({0, 8}, order::access_mode::write, mark_at(2, 1, {{1, 1}}), completed);
    drop(second);
    block& third = get(2 * mib, 3);
    EXPECT_EQ(waits_of(third, 3), (std::vector<point>{{2, 1}})) << "it implies the other";
    drop(third);
}

TEST_F(L1Reuse, EachOwnerHasItsOwnIdSizeAndOrdering) {
    block& first = get(1000, 1);
    const std::uint64_t id = first.id();
    first.set_ordering(ordering_mode::manual);
    drop(first);
    block& second = get(900, 1);
    ASSERT_EQ(&second, &first);
    EXPECT_NE(second.id(), id);
    EXPECT_EQ(second.size(), 900U);
    EXPECT_EQ(second.ordering(), std::nullopt);
    drop(second);
}

class L1Merge : public PoolTest {
protected:
    void SetUp() override {
        tested.set_limit(2 * mib);
        low = &get(mib, 1);
        high = &get(mib, 2);
        ASSERT_EQ(low->address + mib, high->address);
    }
    block* low = nullptr;
    block* high = nullptr;
};

TEST_F(L1Merge, CompleteNeighboursMerge) {
    drop(*low);
    drop(*high);
    block& both = get(2 * mib, 3);
    EXPECT_TRUE(waits_of(both, 3).empty());
    drop(both);
}

TEST_F(L1Merge, NeighboursOfOneTimelineMergeToTheLaterPoint) {
    use(*low, mark_at(1, 2));
    use(*high, mark_at(1, 1));
    drop(*low);
    drop(*high);
    block& both = get(2 * mib, 3);
    EXPECT_EQ(waits_of(both, 3), (std::vector<point>{{1, 2}}));
    drop(both);
}

TEST_F(L1Merge, WhenMemoryIsShortTheLargerFrontierIsThatOfBoth) {
    use(*low, mark_at(1, 1));
    use(*high, mark_at(2, 1, {{1, 1}}));
    drop(*low);
    drop(*high);
    block& both = get(2 * mib, 3);
    EXPECT_EQ(waits_of(both, 3), (std::vector<point>{{2, 1}}));
    drop(both);
}

TEST_F(L1Merge, CompleteAndPendingNeighboursStayApartWhileThereIsMemory) {
    tested.set_limit(8 * mib);
    use(*high, mark_at(2, 1));
    drop(*low);
    drop(*high);
    block& other = get(mib, 3);
    EXPECT_TRUE(waits_of(other, 3).empty()) << "merged with its neighbour it would need a wait";
    drop(other);
}

TEST_F(L1Merge, NeighboursWhoseFrontiersDoNotCompareStayApart) {
    use(*low, mark_at(1, 1));
    use(*high, mark_at(2, 1));
    drop(*low);
    drop(*high);
    EXPECT_EQ(ask(2 * mib, 3), nullptr);
    EXPECT_EQ(wait_for, (point{1, 1})) << "the oldest";
    completed.set(1, 1);
    block& both = get(2 * mib, 3);  // one of them is complete: they can be compared
    EXPECT_EQ(waits_of(both, 3), (std::vector<point>{{2, 1}}));
    drop(both);
}

TEST_F(L1Merge, BothPartsOfASplitBlockKeepTheFrontier) {
    use(*low, mark_at(1, 1));
    drop(*low);
    block& front = get(mib / 2, 3);
    block& back = get(mib / 2, 3);
    EXPECT_EQ(waits_of(front, 3), (std::vector<point>{{1, 1}}));
    EXPECT_EQ(waits_of(back, 3), (std::vector<point>{{1, 1}}));
    drop(front);
    drop(back);
    drop(*high);
}

TEST_F(L1Merge, ABlockBetweenTwoFreeNeighboursJoinsThem) {
    drop(*low);
    drop(*high);
    block& a = get(256 * kib, 1);
    block& b = get(256 * kib, 1);
    block& c = get(256 * kib, 1);
    drop(a);
    drop(c);
    drop(b);
    block& all = get(2 * mib, 1);
    EXPECT_EQ(tested.stats().live, 2 * mib);
    drop(all);
}

}  // namespace
}  // namespace weir::memory::test
