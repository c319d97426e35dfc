// Sequencers: the logical side of one stream (rules S1, S2, O2).
#include "order/sequencer.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "order_support.hpp"

namespace weir::order::test {
namespace {

// Makes `stream` wait for `target`, as `stream.wait(event)` does. Returns the number of waits issued.
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

TEST(S2, RecordOnAStreamThatRanNothingSaysNothingAboutTheTimelinesFormerOwner) {
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

// The stream waits, runs nothing, and an event is recorded again: the second event covers more than the first, and a stream ordered after
// the first must not count as ordered after the second.
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

/// A short plan for the next operation of a stream, which comes after these.
short_plan short_plan_for(const sequencer& stream, const std::vector<mark>& targets) {
    const nothing_completes completed;
    short_plan made(stream.timeline(), stream.known());
    for (const mark& one : targets) {
        EXPECT_TRUE(made.need(one));
    }
    EXPECT_TRUE(made.resolve(completed));
    return made;
}

TEST(O2, AClockIsRaisedWhereItLiesToWhatAnotherOneWouldBe) {
    const mark before = mark_at(2, 5, {{3, 4}, {6, 1}});
    const std::vector<std::vector<mark>> within_room = {{mark_at(2, 9)},
                                                        {mark_at(2, 9, {{3, 8}, {5, 1}})},
                                                        {mark_at(4, 2, {{2, 1}, {3, 9}}), mark_at(6, 6, {{7, 1}})},
                                                        // with places that the clock does not use yet
                                                        {mark_at(2, 9, {{3, 8}, {9, 4}})},
                                                        {mark_at(10, 9, {{3, 8}})}};
    // with places for which the clock has no room
    const std::vector<std::vector<mark>> beyond = {
        {mark_at(2, 9, {{3, 8}, {13, 4}})}, {mark_at(30, 9, {{3, 8}})}, {mark_at(4, 2), mark_at(6, 6, {{63, 1}})}};
    std::vector<std::vector<mark>> all = within_room;
    all.insert(all.end(), beyond.begin(), beyond.end());
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::vector<mark>& targets = all[i];
        sequencer one{1};
        sequencer other{1};
        wait_for(one, before);
        wait_for(other, before);
        ASSERT_TRUE(one.is_sole());
        const shared_frontier* const lay = one.known().get();
        const auto reserve = [&](sequencer& on, bool is_sole) {
            short_plan found = short_plan_for(on, targets);
            found.prepare(is_sole);
            return on.reserve(found);
        };
        const epoch at = reserve(one, true);
        EXPECT_EQ(at, reserve(other, false));
        const mark raised = one.record();
        const mark made = other.record();
        EXPECT_EQ(raised.at, made.at);
        EXPECT_EQ(raised.at.at, at);
        EXPECT_EQ(*raised.known, *made.known);
        EXPECT_EQ(raised.known.get() == lay, i < within_room.size());
        EXPECT_LE(raised.known->strides(), raised.known->room());
        EXPECT_EQ(one.known(), raised.known);
        for (const mark& target : targets) {
            EXPECT_TRUE(raised.known->covers(target.at));
            EXPECT_TRUE(!target.known || raised.known->dominates(*target.known));
        }
        EXPECT_TRUE(raised.known->dominates(*before.known));
    }
}

TEST(O2, AClockThatOthersHaveStaysAsItIs) {
    sequencer stream{1};
    EXPECT_FALSE(stream.is_sole()) << "there is none yet";
    wait_for(stream, mark_at(2, 5));
    EXPECT_TRUE(stream.is_sole());
    {
        const mark event = stream.record();
        EXPECT_FALSE(stream.is_sole());
        short_plan found = short_plan_for(stream, {mark_at(3, 7)});
        found.prepare(stream.is_sole());
        stream.reserve(found);
        EXPECT_FALSE(event.known->covers({3, 7}));
        EXPECT_TRUE(stream.known()->covers({3, 7}));
    }
    EXPECT_TRUE(stream.is_sole()) << "the event is gone";
}

TEST(O2, AClockThatWasMadeForAnOperationThatCameToNothingIsForgotten) {
    sequencer stream{1};
    wait_for(stream, mark_at(2, 5, {{5, 1}}));
    short_plan plan = short_plan_for(stream, {mark_at(3, 7)});
    plan.prepare(false);  // and then memory ran out
    plan.begin(stream.timeline(), stream.known());
    ASSERT_TRUE(plan.need(mark_at(9, 1)));  // the stream's clock has room for it, but no place yet
    const nothing_completes completed;
    ASSERT_TRUE(plan.resolve(completed));
    plan.prepare(stream.is_sole());
    stream.reserve(plan);
    EXPECT_TRUE(stream.known()->covers({9, 1}));
    EXPECT_FALSE(stream.known()->covers({3, 7}));
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
