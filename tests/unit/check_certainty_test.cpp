// Rule V1: "definite" and "possible" races, by the certainty of the accesses. The detector is fed by hand: no runtime takes part.
#include "detector_fixture.hpp"

namespace weir::check {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::possibly;
using testing::reads;
using testing::writes;

class DetectorCertainty : public Detector {
protected:
    /// The races found, as "definite 1->2" with the lines of the two accesses.
    [[nodiscard]] std::vector<std::string> certainties() const {
        std::vector<std::string> all;
        for (const race& one : detector_.report()) {
            all.push_back(one.certainty + " " + std::to_string(one.first.line) + "->" +
                          std::to_string(one.second.line));
        }
        return all;
    }
};

TEST_F(DetectorCertainty, V1_a_race_is_definite_if_both_accesses_are) {
    program_.enqueue(a_, 1, {writes(1)});
    program_.enqueue(b_, 2, {reads(1)});
    program_.enqueue(a_, 3, {possibly(writes(2))});
    program_.enqueue(b_, 4, {reads(2)});
    program_.enqueue(a_, 5, {writes(3)});
    program_.enqueue(b_, 6, {possibly(reads(3))});
    EXPECT_THAT(certainties(), ElementsAre("definite 1->2", "possible 3->4", "possible 5->6"));
}

TEST_F(DetectorCertainty, V1_an_access_of_the_host_may_be_possible_too) {
    program_.enqueue(a_, 1, {writes(1)});
    program_.host_accesses(reads(1), 2);
    program_.host_accesses(possibly(reads(1)), 3);
    EXPECT_THAT(certainties(), ElementsAre("definite 1->2", "possible 1->3"));
}

TEST_F(DetectorCertainty, V1_control_possible_accesses_that_the_program_orders_do_not_race) {
    const auto first = program_.enqueue(a_, 1, {possibly(writes(1))});
    program_.enqueue(b_, 2, {possibly(reads(1))}, {first});
    EXPECT_THAT(certainties(), IsEmpty());
}

TEST_F(DetectorCertainty, V1_a_possible_access_hides_no_definite_one) {
    program_.enqueue(a_, 1, {writes(1)});
    program_.enqueue(a_, 2, {possibly(writes(1))});
    program_.enqueue(b_, 3, {reads(1)});
    EXPECT_THAT(certainties(), ElementsAre("definite 1->3", "possible 2->3"));
}

TEST_F(DetectorCertainty, V1_a_definite_access_hides_a_possible_one) {
    program_.enqueue(a_, 1, {possibly(writes(1))});
    program_.enqueue(a_, 2, {writes(1)});
    program_.enqueue(b_, 3, {reads(1)});
    EXPECT_THAT(certainties(), ElementsAre("definite 2->3"));
}

TEST_F(DetectorCertainty, V1_use_after_free_is_definite_only_if_the_use_is) {
    program_.allocate(a_, 1, 1);
    program_.enqueue(b_, 2, {writes(1)});
    program_.drop(1);
    program_.allocate(a_, 2, 3);
    program_.enqueue(b_, 4, {possibly(writes(2))});
    program_.drop(2);
    EXPECT_THAT(certainties(), ElementsAre("definite 2->1", "possible 4->3"));
}

}  // namespace
}  // namespace weir::check
