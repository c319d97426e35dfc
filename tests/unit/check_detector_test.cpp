// Rule V1, on made-up programs: which pairs of accesses are reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "detector_fixture.hpp"
#include "observe/acting.hpp"
#include "observe/deferred_reports.hpp"
#include "observe/observer.hpp"
#include "weir/check.hpp"
#include "weir/error.hpp"

namespace weir::check {
namespace {

using testing::automatic;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::observer_script;
using testing::reads;
using ::testing::UnorderedElementsAre;
using testing::writes;

TEST_F(Detector, V1_names_read_after_write_write_after_read_and_write_after_write) {
    program_.enqueue(a_, 1, {writes(1), reads(2), writes(3)});
    program_.enqueue(b_, 2, {reads(1)});
    program_.enqueue(b_, 3, {writes(2)});
    program_.enqueue(b_, 4, {writes(3)});
    EXPECT_THAT(found(), ElementsAre("RAW 1->2", "WAR 1->3", "WAW 1->4"));
}

TEST_F(Detector, V1_one_stream_is_ordered) {
    program_.enqueue(a_, 1, {writes(1)});
    program_.enqueue(a_, 2, {writes(1), reads(1)});
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(Detector, F1_two_readers_are_fine) {
    program_.enqueue(a_, 1, {reads(1)});
    program_.enqueue(b_, 2, {reads(1)});
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(Detector, F1_a_write_after_two_readers_of_which_one_is_ordered) {
    program_.enqueue(a_, 1, {reads(1)});
    program_.enqueue(b_, 2, {reads(1)});
    program_.wait(c_, program_.record(a_, 7));
    program_.enqueue(c_, 3, {writes(1)});
    EXPECT_THAT(found(), ElementsAre("WAR 2->3"));
}

TEST_F(Detector, F2_a_chain_of_events_over_ten_streams_is_transitive) {
    program_.enqueue(a_, 1, {writes(1)});
    frontiers::point last = program_.record(a_, 100);
    for (int i = 0; i < 10; ++i) {
        observer_script::stream& next = program_.make_stream("chain");
        program_.wait(next, last);
        last = program_.record(next, 101);  // only the wait precedes the record
    }
    program_.wait(b_, last);
    program_.enqueue(b_, 2, {writes(1)});
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(Detector, F2_merging_keeps_the_larger_of_two_clocks) {
    const auto early = program_.enqueue(a_, 1, {});
    const auto late = program_.enqueue(a_, 2, {writes(1)});
    program_.wait(b_, late);
    program_.wait(b_, early);
    program_.enqueue(b_, 3, {reads(1)});
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(Detector, F3_work_after_the_record_is_not_covered) {
    program_.enqueue(a_, 1, {});
    const auto event = program_.record(a_, 7);
    program_.enqueue(a_, 2, {writes(1)});
    program_.wait(b_, event, 7);
    program_.enqueue(b_, 3, {reads(1)});
    EXPECT_THAT(found(), ElementsAre("stale-event 2->3"));
}

TEST_F(Detector, V1_a_default_stream_and_another_are_a_kind_of_their_own) {
    using observe::default_kind;
    auto& weirs = program_.make_stream("default", nullptr, 0, default_kind::device);
    auto& other_devices = program_.make_stream("default", nullptr, 0, default_kind::device);
    auto& legacy = program_.make_stream("legacy", nullptr, 1, default_kind::legacy);
    auto& of_thread = program_.make_stream("thread", nullptr, 2, default_kind::thread);
    program_.enqueue(weirs, 1, {writes(1)});
    program_.enqueue(b_, 2, {reads(1)});
    program_.enqueue(b_, 3, {writes(2)});
    program_.enqueue(legacy, 4, {reads(2)});
    program_.enqueue(legacy, 5, {writes(3)});
    program_.enqueue(of_thread, 6, {reads(3)});
    program_.enqueue(weirs, 7, {writes(4)});
    program_.enqueue(other_devices, 8, {reads(4)});
    program_.enqueue(a_, 9, {writes(5)});
    program_.enqueue(b_, 10, {reads(5)});
    EXPECT_THAT(found(), ElementsAre("default-stream 1->2", "default-stream 3->4", "default-stream 5->6", "RAW 7->8",
                                     "RAW 9->10"));
    const report all = detector_.report();
    EXPECT_EQ(all.races()[0].reason,
              "What program.cpp:1 enqueued runs on Weir's default stream, where work goes that is given no stream.");
    EXPECT_EQ(all.races()[1].reason,
              "What program.cpp:4 enqueued runs on the legacy default stream, which the driver orders with blocking "
              "streams only.");
    EXPECT_EQ(all.races()[2].reason,
              "What program.cpp:5 enqueued runs on the legacy default stream, which the driver orders with blocking "
              "streams only. What program.cpp:6 enqueued runs on the default stream of a thread, which the driver "
              "orders with the legacy one only.");
    EXPECT_EQ(all.races()[4].reason, "");
}

TEST_F(Detector, V1_a_stale_event_a_drop_and_the_host_are_more_specific_than_a_default_stream) {
    auto& weirs = program_.make_stream("default", nullptr, 0, observe::default_kind::device);
    program_.enqueue(weirs, 1, {});
    const auto event = program_.record(weirs, 7);
    program_.enqueue(weirs, 2, {writes(1)});
    program_.wait(b_, event, 7);
    program_.enqueue(b_, 3, {reads(1)});
    program_.host_accesses(writes(1), 4);
    EXPECT_THAT(found(), ElementsAre("stale-event 2->3", "host 2->4", "host 3->4"));
}

TEST_F(Detector, V1_a_default_stream_that_is_ordered_is_no_race) {
    auto& legacy = program_.make_stream("legacy", nullptr, 1, observe::default_kind::legacy);
    const auto written = program_.enqueue(legacy, 1, {writes(1)});
    program_.wait(b_, written);
    program_.enqueue(b_, 2, {reads(1)});
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(Detector, F3_a_wait_before_any_record_orders_nothing) {
    program_.enqueue(a_, 1, {writes(1)});
    program_.wait(b_, {0, 0}, 7, false);
    program_.enqueue(b_, 2, {reads(1)});
    EXPECT_THAT(found(), ElementsAre("RAW 1->2"));
}

TEST_F(Detector, S2_what_a_stream_waits_for_after_the_record_is_not_in_the_event) {
    program_.enqueue(a_, 1, {writes(1)});
    const auto before = program_.record(b_, 7);
    program_.wait(b_, a_.at());
    const auto after = program_.record(b_, 8);
    program_.wait(c_, before, 7);
    program_.enqueue(c_, 2, {reads(1)});
    EXPECT_THAT(found(), ElementsAre("RAW 1->2"));
    program_.wait(c_, after, 8);
    program_.enqueue(c_, 3, {reads(1)});
    EXPECT_THAT(found(), ElementsAre("RAW 1->2"));
}

TEST_F(Detector, O5_after_orders) {
    const auto written = program_.enqueue(a_, 1, {writes(1)});
    program_.enqueue(b_, 2, {reads(1)}, {written});
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(Detector, F4_a_host_wait_orders_what_is_enqueued_later) {
    const auto written = program_.enqueue(a_, 1, {writes(1)});
    program_.enqueue(b_, 2, {reads(1)});
    program_.host_waits(written);
    program_.enqueue(c_, 3, {reads(1)});
    EXPECT_THAT(found(), ElementsAre("RAW 1->2"));
}

TEST_F(Detector, F10_a_new_stream_comes_after_what_the_host_waited_for) {
    program_.host_waits(program_.enqueue(a_, 1, {writes(1)}));
    observer_script::stream& young = program_.make_stream("young");
    program_.enqueue(young, 2, {writes(1)});
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(Detector, V1_that_a_timeline_is_used_again_orders_nothing) {
    // The runtime gives the timeline of a dropped stream to the next stream once its work is over: that depends on timing.
    program_.enqueue(a_, 1, {writes(1)});
    observer_script::stream& heir = program_.make_stream("heir", &a_);
    program_.enqueue(heir, 2, {reads(1)});
    EXPECT_THAT(found(), ElementsAre("RAW 1->2"));
}

TEST_F(Detector, V1_what_weir_orders_is_silent_whatever_waits_it_found_missing) {
    program_.enqueue(a_, 1, {automatic(writes(1))});
    program_.enqueue(b_, 2, {automatic(reads(1))});
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(Detector, V1_waits_of_weir_hold_back_the_whole_operation) {
    program_.enqueue(a_, 1, {automatic(writes(1)), writes(2)});
    program_.enqueue(b_, 2, {automatic(reads(1)), reads(2)});
    program_.enqueue(c_, 3, {reads(2)});
    EXPECT_THAT(found(), ElementsAre("RAW 1->3"));
}

TEST_F(Detector, V1_assume_manual_counts_no_wait_of_weir) {
    detector strict({check_mode::collect, true});
    observer_script program(strict);
    auto& a = program.make_stream("a");
    auto& b = program.make_stream("b");
    program.enqueue(a, 1, {automatic(writes(1))});
    program.enqueue(b, 2, {automatic(reads(1))}, {}, nullptr, {{a.at(), order::reason::read_after_write, false}});
    EXPECT_EQ(strict.report().size(), 1U);
}

TEST_F(Detector, V1_disjoint_ranges_do_not_race) {
    program_.enqueue(a_, 1, {writes(1, {0, 32})});
    program_.enqueue(b_, 2, {writes(1, {32, 64})});
    program_.enqueue(c_, 3, {reads(1, {31, 33})});
    EXPECT_THAT(found(), UnorderedElementsAre("RAW 1->3", "RAW 2->3"));
}

TEST_F(Detector, V1_a_covered_access_is_represented_by_the_later_one) {
    program_.enqueue(a_, 1, {writes(1)});
    program_.enqueue(a_, 2, {writes(1, {16, 32})});
    program_.enqueue(b_, 3, {reads(1, {16, 32})});
    program_.enqueue(c_, 4, {reads(1, {0, 8})});
    program_.enqueue(c_, 5, {reads(1, {60, 64})});
    EXPECT_THAT(found(), ElementsAre("RAW 2->3", "RAW 1->4", "RAW 1->5"));
}

TEST_F(Detector, V1_an_access_that_raced_is_not_forgotten) {
    program_.enqueue(a_, 1, {writes(1)});
    program_.enqueue(b_, 2, {writes(1)});
    program_.wait(c_, b_.at());
    program_.enqueue(c_, 3, {reads(1)});
    EXPECT_THAT(found(), ElementsAre("WAW 1->2", "RAW 1->3"));
}

TEST_F(Detector, V1_a_pair_of_lines_is_reported_once_and_counted) {
    for (int i = 0; i < 5; ++i) {
        program_.enqueue(a_, 1, {writes(1)});
        program_.enqueue(b_, 2, {reads(1)});
        program_.wait(a_, b_.at());
    }
    ASSERT_THAT(found(), ElementsAre("RAW 1->2"));
    EXPECT_EQ(detector_.report().races()[0].times, 5U);
}

TEST_F(Detector, F12_independent_faults_are_all_reported) {
    program_.enqueue(a_, 1, {writes(1)});
    program_.enqueue(a_, 2, {writes(2)});
    program_.enqueue(b_, 3, {reads(2)});
    program_.enqueue(b_, 4, {reads(1)});
    program_.enqueue(c_, 5, {reads(3)});
    program_.enqueue(a_, 6, {writes(3)});
    EXPECT_THAT(found(), ElementsAre("RAW 2->3", "RAW 1->4", "WAR 5->6"));
}

TEST_F(Detector, V1_the_host_touches_what_is_in_use) {
    const auto written = program_.enqueue(a_, 1, {writes(1)});
    program_.host_accesses(reads(1), 2);
    program_.host_waits(written);
    program_.host_accesses(reads(1), 3);
    ASSERT_THAT(found(), ElementsAre("host 1->2"));
    EXPECT_EQ(detector_.report().races()[0].second.stream, "host");
}

TEST_F(Detector, O6_an_access_of_the_host_that_weir_orders_orders_what_follows) {
    program_.enqueue(a_, 1, {writes(1)});
    program_.host_accesses(automatic(reads(1)), 2);
    program_.enqueue(b_, 3, {writes(1)});
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(Detector, V1_memory_that_the_host_has_found_ready_comes_after_what_conflicted) {
    program_.enqueue(a_, 1, {writes(1, {0, 8})});
    program_.enqueue(b_, 2, {reads(1, {0, 8})});
    program_.enqueue(c_, 3, {writes(1, {8, 16})});
    program_.host_finds_ready(reads(1, {0, 8}));
    program_.host_accesses(reads(1, {0, 8}), 4);
    EXPECT_THAT(found(), ElementsAre("RAW 1->2"));
    program_.host_accesses(writes(1, {0, 16}),
                           5);  // reading does not conflict with a read, and the rest was not asked about
    EXPECT_THAT(found(), ElementsAre("RAW 1->2", "host 2->5", "host 3->5"));
}

TEST_F(Detector, V1_raise_throws_once_the_call_holds_no_lock) {
    detector raising({check_mode::raise, false});
    observer_script program(raising);
    auto& a = program.make_stream("a");
    auto& b = program.make_stream("b");
    program.enqueue(a, 1, {writes(1)});
    program.enqueue(b, 2, {reads(1)});
    EXPECT_THROW(observe::deferred_reports::settle(), race_error);
    EXPECT_NO_THROW(observe::deferred_reports::settle());
    EXPECT_EQ(raising.report().size(), 1U);
}

TEST_F(Detector, V1_warn_prints_each_race_once) {
    detector warning({check_mode::warn, false});
    observer_script program(warning);
    auto& a = program.make_stream("a");
    auto& b = program.make_stream("b");
    ::testing::internal::CaptureStderr();
    for (int i = 0; i < 2; ++i) {
        program.enqueue(a, 1, {writes(1)});
        observe::deferred_reports::settle();
        program.enqueue(b, 2, {reads(1)});
        observe::deferred_reports::settle();
    }
    const std::string printed = ::testing::internal::GetCapturedStderr();
    const auto first = printed.find("RAW race");
    EXPECT_NE(first, std::string::npos);
    EXPECT_EQ(printed.find("RAW race", first + 1), std::string::npos) << printed;
}

TEST_F(Detector, V1_what_no_call_has_thrown_is_thrown_at_the_end_and_not_later) {
    detector raising({check_mode::raise, false});
    observer_script program(raising);
    auto& a = program.make_stream("a");
    auto& b = program.make_stream("b");
    program.allocate(a, 1, 9);
    program.enqueue(b, 1, {writes(1)});
    program.drop(1);
    EXPECT_THROW(raising.settle(true), race_error);
    EXPECT_NO_THROW(observe::deferred_reports::settle());
    EXPECT_NO_THROW(raising.settle(true));
}

TEST_F(Detector, V1_a_later_call_throws_the_race_of_a_drop_once) {
    detector raising({check_mode::raise, false});
    observer_script program(raising);
    auto& a = program.make_stream("a");
    auto& b = program.make_stream("b");
    program.allocate(a, 1, 9);
    program.enqueue(b, 1, {writes(1)});
    program.drop(1);
    EXPECT_THROW(observe::deferred_reports::settle(), race_error);
    EXPECT_NO_THROW(raising.settle(true));
}

TEST_F(Detector, V1_what_an_operation_drops_is_thrown_by_no_other_operation_of_its_thread) {
    detector raising({check_mode::raise, false});
    observer_script program(raising);
    auto& a = program.make_stream("a");
    auto& b = program.make_stream("b");
    auto& c = program.make_stream("c");
    program.allocate(a, 1, 9);
    const auto used = program.enqueue(b, 1, {reads(1)});
    program.enqueue(c, 2, {reads(1)});
    {
        const observe::acting_for over(used);
        program.drop(1);
    }
    EXPECT_NO_THROW(observe::deferred_reports::settle());
    EXPECT_THROW(raising.settle(true), race_error);
}

}  // namespace
}  // namespace weir::check
