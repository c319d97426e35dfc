// Sequencers: the logical side of one stream (rules S1, S2, O2).
#include "order/sequencer.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "order_support.hpp"

namespace weir::order::test {
namespace {

// Makes `stream` wait for `target`, as `stream.wait(event)` does. Gives the number of waits issued.
std::size_t wait_for(sequencer& stream, const mark& target) {
    const nothing_completes completed;
    plan p = stream.next(completed);
    p.need(target, reason::dependency);
    p.resolve();
    if (!p.waits().empty()) {
        stream.reserve(p.clock_after());
    }
    return p.waits().size();
}

TEST(S1, EpochsCountUpFromOne) {
    sequencer stream{3};
    EXPECT_EQ(stream.tail(), 0U);
    EXPECT_EQ(stream.reserve().at, (point{3, 1}));
    EXPECT_EQ(stream.reserve().at, (point{3, 2}));
    EXPECT_EQ(stream.tail(), 2U);
}

TEST(S1, ATimelineHandedOutAgainGoesOnWhereItEnded) {
    sequencer stream{3, 41};
    EXPECT_EQ(stream.reserve().at, (point{3, 42}));
}

TEST(S2, RecordIsTheTailAtThatMoment) {
    sequencer stream{1};
    stream.reserve();
    const mark event = stream.record();
    stream.reserve();
    wait_for(stream, mark_at(2, 5));
    EXPECT_EQ(event.at, (point{1, 1})) << "later work does not change it";
    EXPECT_EQ(event.known, nullptr);
}

TEST(S2, RecordOnAStreamThatRanNothingNeedsNoWait) {
    sequencer stream{1};
    sequencer other{2};
    EXPECT_EQ(wait_for(other, stream.record()), 0U);
}

TEST(S2, RecordOnAStreamThatRanNothingSaysNothingAboutWhoHadTheTimelineBefore) {
    const sequencer heir{1, 41};
    EXPECT_EQ(heir.record().at.at, 0U);
}

TEST(S2, RecordDoesNotMoveTheTail) {
    sequencer stream{1};
    stream.reserve();
    EXPECT_EQ(stream.record().at, stream.record().at);
    EXPECT_EQ(stream.tail(), 1U);
}

TEST(S2, AnEventHoldsWhatItsStreamWaitedFor) {
    sequencer stream{1};
    wait_for(stream, mark_at(2, 5, {{3, 4}}));
    const mark event = stream.record();
    EXPECT_TRUE(covers(event, {2, 5}));
    EXPECT_TRUE(covers(event, {3, 4}));
}

// The stream waits, runs nothing, and is recorded again: the second event means more than the first, and knowing the
// first must not pass for knowing the second.
TEST(S2, AnEventAfterAWaitIsNotTheEventBeforeIt) {
    sequencer producer{0};
    producer.reserve();
    sequencer stream{1};
    stream.reserve();
    const mark before = stream.record();
    EXPECT_EQ(wait_for(stream, producer.record()), 1U);
    const mark after = stream.record();
    EXPECT_NE(before.at, after.at);

    sequencer consumer{2};
    EXPECT_EQ(wait_for(consumer, before), 1U);
    EXPECT_EQ(wait_for(consumer, after), 1U);
    EXPECT_TRUE(consumer.known()->covers(producer.record().at));

    sequencer at_once{3};
    const nothing_completes completed;
    plan p = at_once.next(completed);
    p.need(before, reason::dependency);
    p.need(after, reason::dependency);
    p.resolve();
    EXPECT_TRUE(p.clock_after()->covers(producer.record().at));
}

TEST(S2, AWaitThatIsImpliedTakesNoEpoch) {
    sequencer producer{0};
    producer.reserve();
    sequencer stream{1};
    EXPECT_EQ(wait_for(stream, producer.record()), 1U);
    const epoch tail = stream.tail();
    EXPECT_EQ(wait_for(stream, producer.record()), 0U);
    EXPECT_EQ(stream.tail(), tail);
}

/// A stream that waits for each of these in turn, and the plan for the last.
struct waiting {
    waiting(std::initializer_list<mark> targets) : all(targets), next(after_all_but_the_last()) {
        next.need(all.back(), reason::dependency);
        next.resolve();
    }
    plan after_all_but_the_last() {
        for (auto one = all.begin(); one + 1 != all.end(); ++one) {
            wait_for(stream, *one);
        }
        return stream.next(completed);
    }

    std::vector<mark> all;
    nothing_completes completed;
    sequencer stream{1};
    plan next;
};

TEST(O2, AClockIsRaisedWhereItLiesToWhatAnotherOneWouldBe) {
    for (const mark& last : {mark_at(2, 9), mark_at(2, 9, {{3, 8}, {5, 1}}), mark_at(4, 2, {{2, 1}, {3, 9}})}) {
        waiting one{mark_at(2, 5, {{3, 4}}), last};
        waiting other{mark_at(2, 5, {{3, 4}}), last};
        ASSERT_TRUE(one.stream.can_raise(one.next));
        const shared_frontier* const lay = one.stream.known().get();
        const mark raised = one.stream.reserve_raised(one.next);
        const mark made = other.stream.reserve(other.next.clock_after());
        EXPECT_EQ(raised.at, made.at);
        EXPECT_EQ(*raised.known, *made.known);
        EXPECT_EQ(raised.known.get(), lay);
        EXPECT_EQ(one.stream.known(), raised.known);
    }
}

TEST(O2, AClockThatOthersHaveStaysAsItIs) {
    waiting one{mark_at(2, 5), mark_at(3, 7)};
    {
        const mark event = one.stream.record();
        EXPECT_FALSE(one.stream.can_raise(one.next));
        one.stream.reserve(one.next.clock_after());
        EXPECT_FALSE(event.known->covers({3, 7}));
    }
    plan next = one.stream.next(one.completed);
    next.need(mark_at(3, 8), reason::dependency);
    EXPECT_TRUE(one.stream.can_raise(next)) << "the event is gone";
}

TEST(O2, AClockIsRaisedWhereItLiesOnlyIfThatTakesNoMemoryAndOneWait) {
    const timeline_id far = frontier::direct;
    const auto can_raise = [](std::initializer_list<mark> targets) {
        const waiting one(targets);
        return one.stream.can_raise(one.next);
    };
    EXPECT_TRUE(can_raise({mark_at(2, 5), mark_at(far - 1, 7)}));
    EXPECT_FALSE(can_raise({mark_at(2, 5)})) << "there is none yet";
    EXPECT_FALSE(can_raise({mark_at(2, 5), mark_at(far, 7)}));
    EXPECT_FALSE(can_raise({mark_at(2, 5), mark_at(3, 7, {{far, 2}})}));
    EXPECT_FALSE(can_raise({mark_at(far, 5), mark_at(3, 7)}));
    EXPECT_FALSE(can_raise({mark_at(2, 5), mark_at(2, 4)})) << "nothing to wait for";
    waiting two{mark_at(2, 5), mark_at(3, 7)};
    two.next.need(mark_at(4, 1), reason::dependency);
    two.next.resolve();
    EXPECT_FALSE(two.stream.can_raise(two.next));
}

TEST(O2, AnOperationOwnsTheClockItWasReservedWith) {
    sequencer stream{1};
    const mark first = stream.reserve();
    wait_for(stream, mark_at(2, 5));
    const mark second = stream.reserve();
    EXPECT_FALSE(covers(first, {2, 5}));
    EXPECT_TRUE(covers(second, {2, 5}));
}

TEST(O2, OperationsOfOneStreamShareOneClock) {
    sequencer stream{1};
    wait_for(stream, mark_at(2, 5));
    EXPECT_EQ(stream.reserve().known, stream.reserve().known);
}

TEST(O2, EveryForeignEntryIsAFreshEpoch) {
    sequencer stream{1};
    stream.reserve();
    const mark first = stream.enter_foreign();
    const mark second = stream.enter_foreign();
    EXPECT_NE(first.at, second.at);
    EXPECT_FALSE(covers(first, second.at)) << "elision never spans two entries";
    EXPECT_TRUE(covers(second, first.at));

    sequencer other{2};
    EXPECT_EQ(wait_for(other, first), 1U);
    EXPECT_EQ(wait_for(other, second), 1U);
}

}  // namespace
}  // namespace weir::order::test
