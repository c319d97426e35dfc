// Plans: from the points that an operation must come after to the waits that are missing (rules O1, O2, O10).
#include "order/plan.hpp"

#include <gtest/gtest.h>

#include "order_support.hpp"

namespace weir::order::test {
namespace {

// Timeline 0, whose tail is 10.
struct stream {
    plan next(const clock& known) { return {0, 10, known, completed, true}; }
    plan next() { return next(nothing); }

    set_watermarks completed;
    const clock nothing{};
};

TEST(O2, AnUnorderedPointIsWaitedFor) {
    stream s;
    plan p = s.next();
    p.need(mark_at(1, 4), reason::read_after_write);
    p.resolve();
    ASSERT_EQ(p.waits().size(), 1U);
    EXPECT_EQ(p.waits()[0].target.at, (point{1, 4}));
    EXPECT_EQ(p.waits()[0].why, reason::read_after_write);
    EXPECT_TRUE(p.elisions().empty());
}

TEST(O2, SameStreamNeedsNoWait) {
    stream s;
    plan p = s.next();
    p.need(mark_at(0, 10), reason::write_after_write);
    p.resolve();
    EXPECT_TRUE(p.waits().empty());
    ASSERT_EQ(p.elisions().size(), 1U);
    EXPECT_EQ(p.elisions()[0].kind, witness_kind::same_stream);
    EXPECT_EQ(p.elisions()[0].target, (point{0, 10}));
    EXPECT_EQ(p.elisions()[0].witness, (point{0, 10}));
}

TEST(O2, WhatTheStreamKnowsIsNotWaitedFor) {
    stream s;
    const clock known = clock_of({{1, 4}});
    plan p = s.next(known);
    p.need(mark_at(1, 4), reason::read_after_write);
    p.need(mark_at(1, 3), reason::read_after_write);
    p.resolve();
    EXPECT_TRUE(p.waits().empty());
    ASSERT_EQ(p.elisions().size(), 2U);
    EXPECT_EQ(p.elisions()[0].kind, witness_kind::known);
    EXPECT_EQ(p.elisions()[0].witness, (point{0, 10})) << "the evidence names the stream's own tail";
}

TEST(O2, ALaterEpochThanTheKnownOneIsWaitedFor) {
    stream s;
    const clock known = clock_of({{1, 4}});
    plan p = s.next(known);
    p.need(mark_at(1, 5), reason::read_after_write);
    p.resolve();
    EXPECT_EQ(p.waits().size(), 1U);
}

TEST(O2, WhatIsCompleteIsNotWaitedFor) {
    stream s;
    s.completed.set(1, 4);
    plan p = s.next();
    p.need(mark_at(1, 4), reason::write_after_read);
    p.need(mark_at(1, 5), reason::write_after_read);
    p.resolve();
    ASSERT_EQ(p.waits().size(), 1U);
    EXPECT_EQ(p.waits()[0].target.at, (point{1, 5}));
    ASSERT_EQ(p.elisions().size(), 1U);
    EXPECT_EQ(p.elisions()[0].kind, witness_kind::complete);
    EXPECT_EQ(p.elisions()[0].witness, (point{1, 4}));
}

TEST(O2, WaitImpliedTransitivelyIsNotIssued) {
    stream s;
    // 2:3 was ordered after 1:4, so the wait for 2:3 implies the one for 1:4, in whichever order they are stated.
    for (const bool implied_first : {true, false}) {
        plan p = s.next();
        if (implied_first) {
            p.need(mark_at(1, 4), reason::write_after_write);
        }
        p.need(mark_at(2, 3, {{1, 4}}), reason::write_after_read);
        if (!implied_first) {
            p.need(mark_at(1, 4), reason::write_after_write);
        }
        p.resolve();
        ASSERT_EQ(p.waits().size(), 1U);
        EXPECT_EQ(p.waits()[0].target.at, (point{2, 3}));
        ASSERT_EQ(p.elisions().size(), 1U);
        EXPECT_EQ(p.elisions()[0].kind, witness_kind::other_wait);
        EXPECT_EQ(p.elisions()[0].target, (point{1, 4}));
        EXPECT_EQ(p.elisions()[0].why, reason::write_after_write);
        EXPECT_EQ(p.elisions()[0].witness, (point{2, 3}));
    }
}

TEST(O2, AChainOfImpliedWaitsLeavesTheLast) {
    stream s;
    plan p = s.next();
    p.need(mark_at(1, 1), reason::write_after_read);
    p.need(mark_at(2, 1, {{1, 1}}), reason::write_after_read);
    p.need(mark_at(3, 1, {{1, 1}, {2, 1}}), reason::write_after_read);
    p.resolve();
    ASSERT_EQ(p.waits().size(), 1U);
    EXPECT_EQ(p.waits()[0].target.at, (point{3, 1}));
}

TEST(O2, OneWaitForEachTimelineTheLatest) {
    stream s;
    for (const bool later_first : {true, false}) {
        plan p = s.next();
        p.need(mark_at(1, later_first ? 7U : 4U), reason::read_after_write);
        p.need(mark_at(1, later_first ? 4U : 7U), reason::write_after_read);
        p.resolve();
        ASSERT_EQ(p.waits().size(), 1U);
        EXPECT_EQ(p.waits()[0].target.at, (point{1, 7}));
        EXPECT_EQ(p.waits()[0].why, later_first ? reason::read_after_write : reason::write_after_read);
        ASSERT_EQ(p.elisions().size(), 1U);
        EXPECT_EQ(p.elisions()[0].kind, witness_kind::other_wait);
        EXPECT_EQ(p.elisions()[0].target, (point{1, 4}));
        EXPECT_EQ(p.elisions()[0].witness, (point{1, 7}));
    }
}

TEST(O2, WaitsAreAnAntichain) {
    stream s;
    plan p = s.next();
    p.need(mark_at(1, 4, {{3, 2}}), reason::write_after_read);
    p.need(mark_at(2, 4, {{3, 1}}), reason::write_after_read);
    p.need(mark_at(3, 3), reason::write_after_read);
    p.resolve();
    EXPECT_EQ(p.waits().size(), 3U) << "3:3 is later than what the others know of timeline 3";
    for (const wait& a : p.waits()) {
        for (const wait& b : p.waits()) {
            EXPECT_TRUE(a.target.at == b.target.at || !covers(a.target, b.target.at));
        }
    }
}

TEST(O2, ThePointBeforeEverythingNeedsNothing) {
    stream s;
    plan p = s.next();
    p.need(mark_at(1, 0), reason::dependency);
    p.resolve();
    EXPECT_TRUE(p.waits().empty());
    EXPECT_TRUE(p.elisions().empty());
}

TEST(O2, EvidenceIsKeptOnlyOnRequest) {
    stream s;
    plan p{0, 10, s.nothing, s.completed, false};
    p.need(mark_at(0, 1), reason::write_after_write);
    p.need(mark_at(1, 1), reason::write_after_write);
    p.need(mark_at(2, 1, {{1, 1}}), reason::write_after_write);
    p.resolve();
    EXPECT_EQ(p.waits().size(), 1U);
    EXPECT_TRUE(p.elisions().empty());
}

TEST(O2, ClockAfterIsTheSameObjectWithoutWaits) {
    stream s;
    const clock known = clock_of({{1, 4}});
    plan p = s.next(known);
    p.need(mark_at(1, 4), reason::read_after_write);
    p.resolve();
    EXPECT_EQ(p.clock_after(), known);
    EXPECT_EQ(s.next().clock_after(), nullptr) << "a program with one stream never makes a clock";
}

TEST(O2, ClockAfterCoversTheWaitsAndWhatTheyKnow) {
    stream s;
    const clock known = clock_of({{1, 4}, {2, 9}});
    plan p = s.next(known);
    p.need(mark_at(3, 2, {{1, 6}, {2, 1}, {0, 8}}), reason::read_after_write);
    p.resolve();
    const clock after = p.clock_after();
    ASSERT_TRUE(after);
    EXPECT_TRUE(after->dominates(*clock_of({{1, 6}, {2, 9}, {3, 2}})));
    for (const timeline_id other : {1U, 2U, 3U}) {
        EXPECT_FALSE(after->covers({other, 10}));
    }
}

TEST(O2, ClockAfterSeveralWaitsCoversAllOfThemAndTheStreamsOwnPast) {
    stream s;
    const clock known = clock_of({{1, 4}, {2, 9}});
    plan p = s.next(known);
    p.need(mark_at(3, 2, {{1, 6}, {5, 7}}), reason::read_after_write);
    p.need(mark_at(4, 3, {{6, 1}}), reason::write_after_read);
    p.need(mark_at(5, 7), reason::write_after_read);
    p.resolve();
    EXPECT_EQ(p.waits().size(), 2U) << "that for {5, 7} is implied by the first";
    EXPECT_EQ(*p.clock_after(), *clock_of({{1, 6}, {2, 9}, {3, 2}, {4, 3}, {5, 7}, {6, 1}}));
}

TEST(O2, ClockAfterLeavesOutWhatIsCompleteOnceThereIsMuchOfIt) {
    stream s;
    frontier much;
    much.merge(point{1, 4});
    much.merge(point{2, 9});
    const timeline_id last = frontier::direct + frontier::in_place;
    for (timeline_id other = frontier::direct; other <= last; ++other) {
        much.merge(point{other, 1});
        s.completed.set(other, 1);
    }
    const clock known = make_clock(much);
    plan p = s.next(known);
    p.need(mark_at(3, 2), reason::read_after_write);
    p.resolve();
    s.completed.set(1, 4);
    s.completed.set(2, 8);
    EXPECT_EQ(*p.clock_after(), *clock_of({{2, 9}, {3, 2}}));
}

TEST(Mark, CoversItsTimelineUpToItselfAndWhatItKnows) {
    const mark m = mark_at(1, 5, {{2, 3}});
    EXPECT_TRUE(covers(m, {1, 5}));
    EXPECT_FALSE(covers(m, {1, 6}));
    EXPECT_TRUE(covers(m, {2, 3}));
    EXPECT_FALSE(covers(m, {2, 4}));
    EXPECT_FALSE(covers(m, {3, 1}));
    EXPECT_FALSE(covers(mark_at(1, 5), {2, 1}));
}

TEST(Mark, NothingCompletesUnderNothingCompletes) {
    const nothing_completes never;
    EXPECT_FALSE(never.is_complete({0, 1}));
    EXPECT_TRUE(never.is_complete({0, 0})) << "what is before everything is over";
}

}  // namespace
}  // namespace weir::order::test
