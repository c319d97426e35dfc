// Rule V1, on made-up programs: memory that is dropped too early, and its next owner.
#include "detector_fixture.hpp"
#include "observe/acting.hpp"
#include "weir/check.hpp"

namespace weir::check {
namespace {

using testing::automatic;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::observer_script;
using testing::reads;
using testing::writes;

class DetectorMemory : public Detector {
protected:
    static constexpr std::uint64_t here = 0x5000;
};

TEST_F(DetectorMemory, V1_a_drop_that_a_use_on_another_stream_is_not_ordered_before_is_a_use_after_free) {
    program_.allocate(a_, 1, 9);
    program_.enqueue(b_, 1, {reads(1)});
    program_.drop(1);
    EXPECT_THAT(found(), ElementsAre("use-after-free 1->9"));
    const report all = detector_.report();
    const race& one = all.races()[0];
    EXPECT_TRUE(one.second.is_drop);
    EXPECT_EQ(one.second.stream, "a");
    EXPECT_EQ(one.certainty, "definite");
    EXPECT_EQ(one.mend,
              "weir::event e = b.record();  // after program.cpp:1\n"
              "a.wait(e);                   // before the last owner lets go");
}

TEST_F(DetectorMemory, V1_a_drop_comes_after_its_allocating_stream_and_what_that_waited_for) {
    program_.allocate(a_, 1, 9);
    program_.enqueue(a_, 1, {writes(1)});
    program_.enqueue(b_, 2, {writes(1)}, {a_.at()});
    program_.wait(a_, b_.at());
    program_.drop(1);
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(DetectorMemory, V1_a_drop_comes_after_what_the_host_waited_for) {
    program_.allocate(a_, 1, 9);
    program_.enqueue(b_, 1, {writes(1)});
    program_.host_waits(b_.at());
    program_.drop(1);
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(DetectorMemory, V1_what_the_allocating_stream_does_after_the_drop_does_not_count) {
    program_.allocate(a_, 1, 9);
    program_.enqueue(b_, 1, {writes(1)});
    program_.drop(1);
    program_.wait(a_, b_.at());
    EXPECT_THAT(found(), ElementsAre("use-after-free 1->9"));
}

TEST_F(DetectorMemory, V1_a_drop_after_accesses_that_weir_orders_is_its_business) {
    program_.allocate(a_, 1, 9);
    program_.enqueue(b_, 1, {automatic(writes(1))});
    program_.drop(1);
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(DetectorMemory, V1_memory_that_an_operation_keeps_is_dropped_after_it) {
    program_.allocate(a_, 1, 9);
    const auto used = program_.enqueue(b_, 1, {writes(1)});
    program_.release(1);
    {
        const observe::acting_for over(used);
        program_.drop(1);
    }
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(DetectorMemory, V1_who_of_the_owners_lets_go_last_is_luck) {
    program_.allocate(a_, 1, 9);
    const auto used = program_.enqueue(b_, 1, {writes(1)});
    {
        const observe::acting_for over(used);
        program_.release(1);
    }
    program_.drop(1);
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(DetectorMemory, V1_an_operation_that_keeps_memory_does_not_keep_it_for_others) {
    program_.allocate(a_, 1, 9);
    const auto used = program_.enqueue(b_, 1, {reads(1)});
    program_.enqueue(c_, 2, {reads(1)});
    program_.release(1);
    program_.wait(a_, c_.at());  // too late: the host has dropped it
    {
        const observe::acting_for over(used);
        program_.drop(1);
    }
    EXPECT_THAT(found(), ElementsAre("use-after-free 2->9"));
}

TEST_F(DetectorMemory, V1_drops_of_memory_that_nobody_saw_allocated_are_unseen) {
    program_.enqueue(b_, 1, {writes(1)});
    program_.drop(1);
    EXPECT_THAT(found(), IsEmpty());
    EXPECT_THAT(detector_.report().unseen(), ElementsAre(::testing::HasSubstr("before the check began")));
}

TEST_F(DetectorMemory, V1_a_new_owner_that_the_former_ones_use_is_not_ordered_before_is_an_early_reuse) {
    program_.allocate(a_, 1, 8, here);
    program_.enqueue(b_, 1, {writes(1)});
    program_.drop(1);
    program_.allocate(c_, 2, 9, here);
    program_.enqueue(c_, 2, {writes(2)});
    program_.enqueue(c_, 3, {reads(2)});
    EXPECT_THAT(found(), ElementsAre("use-after-free 1->8", "early-reuse 1->2", "early-reuse 1->3"));
}

TEST_F(DetectorMemory, V1_a_new_owner_may_be_ordered_after_the_former_ones_use) {
    program_.allocate(a_, 1, 8, here);
    program_.enqueue(b_, 1, {writes(1)});
    program_.drop(1);
    program_.allocate(b_, 2, 9, here);
    program_.enqueue(b_, 2, {writes(2)});
    program_.enqueue(c_, 3, {reads(2)}, {b_.at()});
    EXPECT_THAT(found(), ElementsAre("use-after-free 1->8"));
}

TEST_F(DetectorMemory, V1_a_pool_may_hand_on_what_was_dropped_in_time) {
    program_.allocate(a_, 1, 8, here);
    program_.enqueue(a_, 1, {writes(1)});
    program_.drop(1);
    program_.allocate(c_, 2, 9, here);  // whose pool orders it after the drop
    program_.enqueue(c_, 2, {writes(2)});
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(DetectorMemory, V1_early_reuse_of_a_part_of_the_memory) {
    program_.allocate(a_, 1, 8, here);
    program_.enqueue(b_, 1, {writes(1, {0, 16})});
    program_.enqueue(b_, 2, {reads(1, {48, 64})});
    program_.drop(1);
    program_.allocate(c_, 2, 9, here + 32);  // its bytes 16 to 31 are the former 48 to 63
    program_.enqueue(c_, 3, {writes(2, {0, 16})});
    program_.enqueue(c_, 4, {reads(2, {16, 32})});
    EXPECT_THAT(found(), ElementsAre("use-after-free 1->8", "use-after-free 2->8")) << "two readers do not race";
    program_.enqueue(c_, 5, {writes(2, {30, 34})});
    EXPECT_THAT(found(), ElementsAre("use-after-free 1->8", "use-after-free 2->8", "early-reuse 2->5"));
}

TEST_F(DetectorMemory, V1_what_may_still_happen_outlives_owners_that_do_not_come_after_it) {
    program_.allocate(a_, 1, 7, here);
    program_.enqueue(b_, 1, {writes(1)});
    program_.drop(1);
    program_.allocate(c_, 2, 8, here);
    program_.drop(2);
    program_.allocate(c_, 3, 9, here);
    program_.enqueue(c_, 2, {writes(3)}, {b_.at()});
    program_.drop(3);
    program_.allocate(a_, 4, 10, here);
    program_.enqueue(a_, 3, {writes(4)});
    EXPECT_THAT(found(), ElementsAre("use-after-free 1->7")) << "the third owner's write stands for the first's";
}

TEST_F(DetectorMemory, V1_reuse_that_weir_orders_is_its_business) {
    program_.allocate(a_, 1, 8, here);
    program_.enqueue(b_, 1, {writes(1)});
    program_.drop(1);
    program_.allocate(c_, 2, 9, here);
    program_.enqueue(c_, 2, {automatic(writes(2))});
    EXPECT_THAT(found(), ElementsAre("use-after-free 1->8"));
}

TEST_F(DetectorMemory, V1_other_devices_have_other_memory) {
    program_.allocate(a_, 1, 8, here);
    program_.enqueue(b_, 1, {writes(1)});
    program_.drop(1);
    detector_.allocated({2, 64, "sim:0", here, &c_.info, observer_script::line(9)});
    program_.enqueue(c_, 2, {writes(2)});
    EXPECT_THAT(found(), ElementsAre("use-after-free 1->8"));
}

TEST_F(DetectorMemory, V1_what_a_body_enqueues_comes_after_what_its_operation_comes_after) {
    program_.enqueue(a_, 1, {writes(1)});
    const auto task = program_.enqueue(b_, 2, {writes(2)}, {a_.at()});
    program_.enqueue(c_, 3, {writes(3)});
    {
        const observe::acting_for running(task);
        observer_script::stream& own = program_.make_stream("own");
        program_.enqueue(own, 4, {reads(1)});
        program_.enqueue(own, 5, {reads(2)});  // before the task itself is over
        program_.host_waits(c_.at());
        program_.enqueue(own, 6, {reads(3)});
    }
    program_.enqueue(a_, 7, {reads(3)});  // what the body waited for orders nothing else
    EXPECT_THAT(found(), ElementsAre("RAW 2->5", "RAW 3->7"));
}

TEST_F(DetectorMemory, V1_what_a_body_has_waited_for_comes_before_the_end_of_its_operation) {
    observer_script::stream& waits_before = program_.make_stream("waits before");
    const auto task = program_.enqueue(b_, 1, {});
    program_.wait(waits_before, task);  // whether the body has run by then is luck
    program_.enqueue(b_, 2, {});
    {
        const observe::acting_for running(task);
        program_.host_waits(program_.enqueue(c_, 3, {writes(1)}));
    }
    program_.enqueue(waits_before, 4, {reads(1)});
    program_.enqueue(b_, 5, {reads(1)});
    program_.wait(a_, task);
    program_.enqueue(a_, 6, {reads(1)});
    program_.host_waits(task);
    observer_script::stream& young = program_.make_stream("young");
    program_.enqueue(young, 7, {reads(1)});
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(DetectorMemory, V1_what_a_body_has_only_enqueued_may_be_pending_at_the_end_of_its_operation) {
    const auto task = program_.enqueue(b_, 1, {});
    {
        const observe::acting_for running(task);
        program_.host_waits(program_.enqueue(c_, 2, {writes(1)}));
        program_.enqueue(c_, 3, {writes(1)});
    }
    program_.wait(a_, task);
    program_.enqueue(a_, 4, {reads(1)});
    EXPECT_THAT(found(), ElementsAre("RAW 3->4"));
}

}  // namespace
}  // namespace weir::check
