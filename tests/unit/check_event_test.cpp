// Rule V1, on made-up programs: which races come from a stale event; which are certain.
#include "detector_fixture.hpp"

namespace weir::check {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::observer_script;
using testing::reads;
using testing::writes;

class DetectorEvent : public Detector {
protected:
    static constexpr std::uint64_t event = 7;
    [[nodiscard]] std::string reason() const { return detector_.report().races().at(0).reason; }
};

TEST_F(DetectorEvent, F3_the_record_came_before_the_write) {
    program_.enqueue(a_, 1, {});
    const auto early = program_.record(a_, event, 2);
    program_.enqueue(a_, 3, {writes(1)});
    program_.wait(b_, early, event, true, 4);
    program_.enqueue(b_, 5, {reads(1)});
    ASSERT_THAT(found(), ElementsAre("stale-event 3->5"));
    EXPECT_EQ(reason(), "The wait at program.cpp:4 took the record of program.cpp:2, which was made too early.");
    EXPECT_EQ(detector_.report().races()[0].mend,
              "e.record(a);  // after program.cpp:3\n"
              "b.wait(e);    // after that, before program.cpp:5");
}

TEST_F(DetectorEvent, F3_the_wait_came_before_any_record) {
    program_.wait(b_, {0, 0}, event, false, 1);
    program_.enqueue(a_, 2, {writes(1)});
    program_.record(a_, event, 3);
    program_.enqueue(b_, 4, {reads(1)});
    ASSERT_THAT(found(), ElementsAre("stale-event 2->4"));
    EXPECT_THAT(reason(), HasSubstr("came before any record of its event"));
    EXPECT_THAT(reason(), HasSubstr("the one of program.cpp:3 would have ordered the two"));
}

TEST_F(DetectorEvent, F3_an_earlier_record_was_replaced) {
    program_.enqueue(a_, 1, {writes(1)});
    program_.record(a_, event, 2);
    program_.enqueue(c_, 3, {});
    program_.wait(b_, program_.record(c_, event, 4), event, true, 5);
    program_.enqueue(b_, 6, {reads(1)});
    ASSERT_THAT(found(), ElementsAre("stale-event 1->6"));
    EXPECT_THAT(reason(), HasSubstr("took the record of program.cpp:4; the one of program.cpp:2 would"));
}

TEST_F(DetectorEvent, F3_the_wait_may_be_another_streams_that_the_second_comes_after) {
    const auto early = program_.record(a_, event, 1);
    program_.enqueue(a_, 2, {writes(1)});
    program_.record(a_, event, 3);
    program_.wait(c_, early, event, true, 4);
    program_.wait(b_, c_.at());
    program_.enqueue(b_, 5, {reads(1)});
    EXPECT_THAT(found(), ElementsAre("stale-event 2->5"));
}

TEST_F(DetectorEvent, F3_an_event_that_stands_for_its_operation_may_be_stale_in_after) {
    const auto early = program_.enqueue(a_, 1, {});
    program_.record(a_, event, 2);
    program_.enqueue(a_, 3, {writes(1)});
    program_.enqueue(b_, 4, {reads(1)}, {early});
    EXPECT_THAT(found(), ElementsAre("stale-event 3->4"));
}

TEST_F(DetectorEvent, F3_a_wait_that_took_the_right_record_is_silent) {
    program_.record(a_, event, 1);
    program_.enqueue(a_, 2, {writes(1)});
    program_.wait(b_, program_.record(a_, event, 3), event);
    program_.enqueue(b_, 4, {reads(1)});
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(DetectorEvent, V1_a_wait_that_came_before_the_first_access_is_not_to_blame) {
    program_.enqueue(a_, 1, {});
    program_.wait(b_, program_.record(a_, event), event);
    program_.enqueue(a_, 2, {writes(1)});
    program_.enqueue(b_, 3, {reads(1)});
    EXPECT_THAT(found(), ElementsAre("RAW 2->3"));
}

TEST_F(DetectorEvent, V1_an_event_of_other_streams_is_not_to_blame) {
    program_.enqueue(c_, 1, {});
    program_.wait(b_, program_.record(c_, event), event);
    program_.enqueue(a_, 2, {writes(1)});
    program_.record(a_, 8);
    program_.enqueue(b_, 3, {reads(1)});
    EXPECT_THAT(found(), ElementsAre("RAW 2->3"));
}

TEST_F(DetectorEvent, V1_what_is_found_does_not_depend_on_how_many_events_are_remembered) {
    const auto early = program_.record(a_, event, 1);
    program_.enqueue(a_, 2, {writes(1)});
    program_.wait(b_, early, event);
    for (std::uint64_t other = 100; other < 5000; ++other) {
        program_.wait(c_, program_.record(c_, other), other);
    }
    program_.enqueue(b_, 3, {reads(1)});
    EXPECT_THAT(found(), ElementsAre("RAW 2->3")) << "less is said of it";
}

class DetectorShapes : public Detector {
protected:
    /// Columns [first, last) of a matrix with eight columns and rows of a byte each.
    static order::footprint columns(std::int64_t first, std::int64_t last) {
        const std::vector<order::level> levels{{8, 8}};
        return order::strided(static_cast<std::uint64_t>(first), levels, static_cast<std::uint64_t>(last - first));
    }
    /// Windows of eight bytes that slide over each other.
    static order::footprint windows() {
        const std::vector<order::level> levels{{3, 8}};
        return order::strided(0, levels, 8);
    }
    [[nodiscard]] std::string certainty() const { return detector_.report().races().at(0).certainty; }
};

TEST_F(DetectorShapes, F7_columns_that_share_no_byte_do_not_race) {
    program_.enqueue(a_, 1, {writes(1, columns(0, 3))});
    program_.enqueue(b_, 2, {writes(1, columns(3, 8))});
    EXPECT_THAT(found(), IsEmpty());
    program_.enqueue(c_, 3, {reads(1, columns(2, 4))});
    EXPECT_THAT(found(), ElementsAre("RAW 1->3", "RAW 2->3"));
    EXPECT_EQ(certainty(), "definite");
}

TEST_F(DetectorShapes, F7_a_column_replaces_no_more_than_it_covers) {
    program_.enqueue(a_, 1, {writes(1)});
    program_.enqueue(a_, 2, {writes(1, columns(2, 3))});
    program_.enqueue(b_, 3, {reads(1, {3, 4})});
    EXPECT_THAT(found(), ElementsAre("RAW 1->3"));
}

TEST_F(DetectorShapes, V1_where_it_is_hard_to_see_whether_bytes_are_shared_a_race_is_possible) {
    program_.enqueue(a_, 1, {writes(1, columns(7, 8))});
    program_.enqueue(b_, 2, {reads(1, windows())});
    ASSERT_THAT(found(), ElementsAre("RAW 1->2"));
    EXPECT_EQ(certainty(), "possible");
    program_.enqueue(b_, 2, {reads(1, {7, 8})});
    ASSERT_THAT(found(), ElementsAre("RAW 1->2"));
    EXPECT_EQ(certainty(), "definite") << "once it is certain it stays so";
}

}  // namespace
}  // namespace weir::check
