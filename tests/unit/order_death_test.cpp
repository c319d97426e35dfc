// Death frontiers: the accesses that a new owner of memory inherits from the former one (rules L1, O5).
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "order/history.hpp"
#include "order_support.hpp"

namespace weir::order::test {
namespace {

constexpr std::uint64_t size = 100;
const footprint whole{0, size};
const footprint some{40, 41};

// One resource, and the waits that the next access of timeline 9, which is ordered after nothing, would need.
struct tracked {
    void record(history& into, const footprint& where, access_mode mode, const mark& when) {
        into.reserve(1);
        into.record(where, mode, when, completed);
    }
    std::vector<wait> needed(const footprint& where, access_mode mode, bool hazards) {
        plan p{9, 0, nothing, completed, false};
        memory.require(p, where, mode, hazards);
        p.resolve();
        return {p.waits().begin(), p.waits().end()};
    }

    history memory;
    set_watermarks completed;
    const clock nothing{};
};

TEST(L1, TheNewOwnerComesAfterAllAccessesOfTheFormerOne) {
    tracked block;
    block.record(block.memory, {0, 1}, access_mode::read, mark_at(1, 1));
    block.record(block.memory, {90, 91}, access_mode::write, mark_at(2, 1));
    block.memory.die(size, block.completed);
    const auto waits = block.needed(some, access_mode::read, true);
    ASSERT_EQ(waits.size(), 2U) << "even for a read elsewhere: the contents are the former owner's";
    EXPECT_EQ(waits[0].why, reason::reuse);
    EXPECT_EQ(waits[1].why, reason::reuse);
}

TEST(L1, ManualOrderingObeysTheDeathFrontier) {
    tracked block;
    block.record(block.memory, whole, access_mode::write, mark_at(1, 1));
    EXPECT_TRUE(block.needed(whole, access_mode::write, false).empty());
    block.memory.die(size, block.completed);
    EXPECT_EQ(block.needed(whole, access_mode::write, false).size(), 1U);
}

// What a read gives a meaning to is a write of the new owner, which came after the former owner's use.
TEST(L1, UnderManualOrderingAReadOfTheNewOwnerLeavesFormerOwnersAlone) {
    tracked block;
    block.record(block.memory, whole, access_mode::write, mark_at(1, 1));
    block.memory.die(size, block.completed);
    block.record(block.memory, some, access_mode::write, mark_at(2, 1, {{1, 1}}));
    EXPECT_TRUE(block.needed(some, access_mode::read, false).empty());
    EXPECT_EQ(block.needed(some, access_mode::read, true).size(), 1U) << "control: automatic ordering";
    EXPECT_EQ(block.needed(some, access_mode::write, false).size(), 1U) << "control: a write";
}

TEST(L1, TheDeathFrontierIsReducedToWhatNothingElseImplies) {
    tracked block;
    block.record(block.memory, {0, 10}, access_mode::write, mark_at(1, 1));
    block.record(block.memory, {10, 20}, access_mode::write, mark_at(1, 2));
    block.record(block.memory, {20, 30}, access_mode::read, mark_at(2, 1, {{1, 2}}));
    block.record(block.memory, {30, 40}, access_mode::read, mark_at(3, 1, {{1, 1}}));
    block.memory.die(size, block.completed);
    ASSERT_EQ(block.memory.accesses().size(), 2U);
    EXPECT_EQ(block.memory.accesses()[0].when.at, (point{2, 1}));
    EXPECT_EQ(block.memory.accesses()[1].when.at, (point{3, 1}));
}

TEST(L1, TwoAccessesOfOneOperationLeaveOne) {
    tracked block;
    block.record(block.memory, {0, 10}, access_mode::write, mark_at(1, 1));
    block.record(block.memory, {20, 30}, access_mode::read, mark_at(1, 1));
    block.memory.die(size, block.completed);
    ASSERT_EQ(block.memory.accesses().size(), 1U);
    EXPECT_EQ(block.memory.accesses()[0].where, whole);
    EXPECT_TRUE(block.memory.accesses()[0].former_owner);
}

TEST(L1, WhatIsCompleteLeavesNothing) {
    tracked block;
    block.record(block.memory, whole, access_mode::write, mark_at(1, 1));
    block.completed.set(1, 1);
    block.memory.die(size, block.completed);
    EXPECT_TRUE(block.memory.empty());
}

TEST(L1, AnOwnerThatDoesNothingPassesTheDeathFrontierOn) {
    tracked block;
    block.record(block.memory, whole, access_mode::write, mark_at(1, 1));
    block.memory.die(size, block.completed);
    block.memory.die(size, block.completed);
    EXPECT_EQ(block.needed(some, access_mode::write, false).size(), 1U);
}

TEST(L1, MergedBlocksCarryBothDeathFrontiers) {
    tracked block;
    history other;
    block.record(block.memory, whole, access_mode::write, mark_at(1, 1));
    block.record(other, whole, access_mode::read, mark_at(2, 1));
    block.memory.die(size, block.completed);
    other.die(size, block.completed);
    block.memory.merge_death(other, 2 * size, block.completed);
    ASSERT_EQ(block.memory.accesses().size(), 2U);
    for (const past_access& past : block.memory.accesses()) {
        EXPECT_EQ(past.where, (footprint{0, 2 * size}));
    }
    EXPECT_EQ(block.needed({150, 160}, access_mode::write, false).size(), 2U);
}

TEST(L1, MergedBlocksDropWhatTheOtherImplies) {
    tracked block;
    history other;
    block.record(block.memory, whole, access_mode::write, mark_at(1, 1));
    block.record(other, whole, access_mode::read, mark_at(2, 1, {{1, 1}}));
    block.memory.die(size, block.completed);
    other.die(size, block.completed);
    block.memory.merge_death(other, 2 * size, block.completed);
    ASSERT_EQ(block.memory.accesses().size(), 1U);
    EXPECT_EQ(block.memory.accesses()[0].when.at, (point{2, 1}));
}

// The new owner's first write covers the memory and is ordered after the former owner. Its second access is manual and
// not ordered after its first, which is up to the program. But it must not run before the former owner's accesses are complete,
// since that would corrupt another array.
TEST(L1, ACoveringWriteOfTheNewOwnerDoesNotHideTheFormerOne) {
    tracked block;
    block.record(block.memory, whole, access_mode::read, mark_at(1, 1));
    block.memory.die(size, block.completed);
    block.record(block.memory, whole, access_mode::write, mark_at(2, 1, {{1, 1}}));
    const auto manual = block.needed(whole, access_mode::write, false);
    ASSERT_EQ(manual.size(), 1U);
    EXPECT_EQ(manual[0].target.at, (point{1, 1}));
    const auto automatic = block.needed(whole, access_mode::write, true);
    ASSERT_EQ(automatic.size(), 1U) << "the wait for the new owner's write implies the other";
    EXPECT_EQ(automatic[0].target.at, (point{2, 1}));
}

TEST(L1, AFormerOwnerIsForgottenOnceItIsOver) {
    tracked block;
    block.record(block.memory, whole, access_mode::read, mark_at(1, 1));
    block.memory.die(size, block.completed);
    block.completed.set(1, 1);
    block.record(block.memory, whole, access_mode::write, mark_at(2, 1));
    EXPECT_EQ(block.memory.accesses().size(), 1U);
    EXPECT_FALSE(block.memory.accesses()[0].former_owner);
}

TEST(L1, MemoryThatChangesHandsOftenOnOneStreamKeepsAShortHistory) {
    tracked block;
    for (epoch at = 1; at <= 100; ++at) {
        block.record(block.memory, whole, access_mode::write, mark_at(1, at));
        EXPECT_LE(block.memory.accesses().size(), 2U);
        block.memory.die(size, block.completed);
        EXPECT_EQ(block.memory.accesses().size(), 1U);
    }
}

TEST(L1, ANewOwnersAccessDoesNotMergeWithAFormerOnes) {
    tracked block;
    for (epoch at = 1; at <= history::bound; ++at) {
        block.record(block.memory, {at, at + 1}, access_mode::read, mark_at(2, at));
    }
    history former;
    block.record(former, whole, access_mode::write, mark_at(1, 1));
    block.memory.merge_death(former, size, block.completed);
    for (epoch at = 1; at <= 2 * history::bound; ++at) {
        block.record(block.memory, {at, at + 1}, access_mode::write, mark_at(1, 1 + at));
    }
    std::size_t former_owners = 0;
    for (const past_access& past : block.memory.accesses()) {
        if (past.former_owner) {
            ++former_owners;
            EXPECT_LE(past.when.at.at, history::bound);
        }
    }
    EXPECT_EQ(former_owners, 2U);
}

}  // namespace
}  // namespace weir::order::test
