// Rule V1, on made-up programs whose memory is shared with packages: what entries, exits and uses order (rules X6, X7).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "detector_fixture.hpp"

namespace weir::check {
namespace {

using testing::automatic;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::observer_script;
using testing::reads;
using testing::writes;

/// Memory 1 is shared with the package whose queue this is; memory 2 is not.
class DetectorSharing : public Detector {
protected:
    observer_script::stream& queue_ = program_.make_stream("queue", nullptr, 7);
};

TEST_F(DetectorSharing, X6_what_comes_through_the_package_is_ordered) {
    program_.enqueue_between(a_, queue_, 1, {automatic(reads(1)), writes(2)});
    program_.enqueue_between(b_, queue_, 2, {automatic(reads(1)), reads(2)});
    program_.enqueue(b_, 3, {writes(2)});
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(DetectorSharing, O5_waits_for_safety_order_nothing) {
    program_.enqueue_between(a_, queue_, 1, {reads(1), writes(2)}, false);
    program_.enqueue_between(b_, queue_, 2, {reads(1), reads(2)}, false);
    EXPECT_THAT(found(), ElementsAre("RAW 1->2"));
}

TEST_F(DetectorSharing, O5_nor_does_an_entry_for_safety_that_was_over_beside_an_access_left_to_weir) {
    program_.enqueue_between(a_, queue_, 1, {automatic(reads(1)), writes(2)});
    const frontiers::point entry = program_.enter(queue_);
    const order::elision over{entry, order::reason::entry, order::witness_kind::complete, entry};
    program_.enqueue(b_, 2, {reads(1), automatic(reads(3))}, {}, nullptr, {}, {over});
    program_.enqueue(b_, 3, {writes(2)});
    EXPECT_THAT(found(), ElementsAre("WAW 1->3"));
}

TEST_F(DetectorSharing, X6_the_host_comes_after_what_the_package_had_when_it_waited_for_it) {
    for (const bool waits : {true, false}) {
        const std::uint32_t line = waits ? 1 : 11;
        const std::uint64_t other = waits ? 2 : 3;
        program_.enqueue_between(a_, queue_, line, {automatic(reads(1)), writes(other)});
        if (waits) {
            program_.host_meets(queue_);
            program_.host_accesses(automatic(reads(1)), line + 1);
        }
        program_.enqueue(b_, line + 2, {writes(other)});
    }
    EXPECT_THAT(found(), ElementsAre("WAW 11->13")) << "only where the host did not wait";
}

TEST_F(DetectorSharing, X7_what_is_left_to_weir_comes_after_what_the_package_has_used) {
    program_.enqueue_between(a_, queue_, 1, {automatic(reads(1)), writes(2)});
    program_.use(1, queue_);
    program_.enqueue(b_, 2, {automatic(reads(1))});
    program_.enqueue(b_, 3, {reads(2)});
    program_.enqueue(c_, 4, {reads(1)});
    program_.enqueue(c_, 5, {reads(2)});
    EXPECT_THAT(found(), ElementsAre("RAW 1->5")) << "what the program orders itself does not";
}

TEST_F(DetectorSharing, S5_a_queue_that_is_adopted_again_goes_on_where_it_was) {
    program_.enqueue(a_, 1, {writes(2)});
    program_.wait(queue_, a_.at());
    observer_script::stream& again = program_.make_stream("again", nullptr, 7);
    program_.wait(b_, program_.enter(again));
    program_.enqueue(b_, 2, {reads(2)});
    EXPECT_THAT(found(), IsEmpty());
    observer_script::stream& another = program_.make_stream("another", nullptr, 8);
    program_.wait(c_, program_.enter(another));
    program_.enqueue(c_, 3, {reads(2)});
    EXPECT_THAT(found(), ElementsAre("RAW 1->3"));
}

}  // namespace
}  // namespace weir::check
