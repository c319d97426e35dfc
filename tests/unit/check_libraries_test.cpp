// Rule V1, on made-up programs in which Weir and another library use the same memory, and both are seen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "detector_fixture.hpp"
#include "observe/observers.hpp"
#include "weir/detail/watched_program.hpp"

namespace weir::check {
namespace {

using detail::watched_access;
using detail::watched_stream;
using testing::automatic;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::observer_script;
using testing::reads;
using testing::writes;

constexpr std::uint64_t x = 0x1000;  // an address
constexpr std::uint64_t event = 0x77;
constexpr frontiers::timeline_id first = 1'000'000;  // the library's streams and memory have numbers of the process
constexpr std::uint64_t mine = first;                // the number of memory that Weir shares

/// What Weir's streams get is reported by `program_`, and what the library does by `torch_`, whose streams are one_ and two_.
class DetectorLibraries : public Detector {
public:
    DetectorLibraries() : Detector(first) { observe::observers::add(detector_); }
    ~DetectorLibraries() override { observe::observers::remove(detector_); }
    DetectorLibraries(const DetectorLibraries&) = delete;
    DetectorLibraries& operator=(const DetectorLibraries&) = delete;

protected:
    using access = observer_script::access;

    static source_location line(std::uint32_t number) { return {"train.py", "step", number}; }
    static access imported(access one, std::uint64_t address = x) {
        one.shared = observe::sharing::imported;
        one.address = address;
        return one;
    }
    static access lent(access one, std::uint64_t address = x) {
        one.shared = observe::sharing::lent;
        one.address = address;
        return one;
    }
    void torch(const watched_stream& on, std::uint32_t number, access_mode mode, order::footprint where = {0, 128},
               std::uint64_t memory = x) {
        const watched_access all[] = {{memory, 128, where, mode, true}};
        torch_.operation(on, "aten::op", all, line(number));
    }

    detail::watched_program torch_{"torch", "cuda"};
    watched_stream one_{0, 0x10};
    watched_stream two_{0, 0x20};
    observer_script::stream& s_ = program_.make_stream("s", nullptr, 0, observe::default_kind::none, 0x30);
    /// one_ as Weir has it.
    observer_script::stream& adopted_ = program_.make_stream("adopted", nullptr, 9, observe::default_kind::none, 0x10);
};

constexpr auto read = access_mode::read;
constexpr auto write = access_mode::write;

TEST_F(DetectorLibraries, V1_what_weir_and_a_library_do_to_the_same_bytes_is_compared) {
    torch(one_, 1, write);
    program_.enqueue(s_, 2, {imported(reads(mine))});
    EXPECT_THAT(found(), ElementsAre("RAW 1->2"));
    torch(two_, 3, write);
    EXPECT_THAT(found(), ElementsAre("RAW 1->2", "WAW 1->3", "WAR 2->3"));
}

TEST_F(DetectorLibraries, V1_that_weir_shares_memory_may_be_known_before_it_uses_it_so) {
    program_.enqueue(s_, 1, {writes(mine)});
    detector_.shares(mine, 64, observe::sharing::lent, x);
    torch(one_, 2, read, {0, 8});
    EXPECT_THAT(found(), ElementsAre("RAW 1->2"));
    program_.enqueue(s_, 3, {writes(mine)});
    EXPECT_THAT(found(), ElementsAre("RAW 1->2", "WAR 2->3"));
}

TEST_F(DetectorLibraries, O3_only_bytes_that_both_touch_count) {
    torch(one_, 1, write, {0, 64});
    torch(one_, 2, write, {96, 128});
    program_.enqueue(s_, 3, {imported(writes(mine), x + 64)});
    ASSERT_THAT(found(), ElementsAre("WAW 2->3"));
    EXPECT_EQ(detector_.report().races().front().second.range.begin, 64U) << "counted from where the library's begins";
    torch(two_, 4, read, {0, 64});
    torch(two_, 5, read, {64, 65});
    EXPECT_THAT(found(), ElementsAre("WAW 2->3", "RAW 1->4", "RAW 3->5"));
}

TEST_F(DetectorLibraries, X6_an_operation_is_ordered_with_the_current_stream_and_with_no_other) {
    torch(one_, 1, write);
    program_.enqueue_between(s_, adopted_, 2, {imported(automatic(writes(mine)))});
    torch(one_, 3, write);
    EXPECT_THAT(found(), IsEmpty());
    torch(two_, 4, read);
    EXPECT_THAT(found(), ElementsAre("RAW 3->4", "RAW 2->4"));
    torch(two_, 5, write);
    program_.enqueue_between(s_, adopted_, 6, {imported(automatic(writes(mine)))});
    EXPECT_THAT(found(), ElementsAre("RAW 3->4", "RAW 2->4", "WAW 3->5", "WAW 2->5", "WAW 5->6"));
}

TEST_F(DetectorLibraries, X6_waits_for_safety_do_not_count) {
    torch(one_, 1, write);
    program_.enqueue_between(s_, adopted_, 2, {imported(writes(mine))}, false);
    torch(one_, 3, write);
    EXPECT_THAT(found(), ElementsAre("WAW 1->2", "WAW 2->3"));
}

TEST_F(DetectorLibraries, S5_a_stream_that_both_know_runs_in_order) {
    torch(one_, 1, write);
    program_.enqueue(adopted_, 2, {imported(writes(mine))});
    torch(one_, 3, write);
    program_.enqueue(adopted_, 4, {imported(reads(mine))});
    EXPECT_THAT(found(), IsEmpty());
    torch({0, 0x30}, 5, write);  // control: s_
    EXPECT_THAT(found(), ElementsAre("WAW 3->5", "WAW 2->5", "WAR 4->5"));
}

TEST_F(DetectorLibraries, S5_so_does_one_of_weirs) {
    torch({0, 0x30}, 1, write);
    program_.enqueue(s_, 2, {imported(writes(mine))});
    torch({0, 0x30}, 3, write);
    EXPECT_THAT(found(), IsEmpty());
    torch(one_, 4, read);  // control
    EXPECT_THAT(found(), ElementsAre("RAW 3->4", "RAW 2->4"));
}

TEST_F(DetectorLibraries, S5_streams_of_other_devices_have_the_same_handles) {
    torch({1, 0x30}, 1, write);
    program_.enqueue(s_, 2, {imported(writes(mine))});
    EXPECT_THAT(found(), ElementsAre("WAW 1->2"));
}

TEST_F(DetectorLibraries, S3_an_event_holds_what_either_has_put_there_before_it) {
    program_.enqueue(adopted_, 1, {imported(writes(mine))});
    torch_.event_recorded(event, one_, line(2));
    program_.enqueue(adopted_, 3, {imported(reads(mine))});
    torch_.stream_waits(two_, event, line(4));
    torch(two_, 5, read);
    EXPECT_THAT(found(), IsEmpty());
    torch(two_, 6, write);
    EXPECT_THAT(found(), ElementsAre(HasSubstr(" 3->6")));
}

TEST_F(DetectorLibraries, S3_so_does_one_of_weirs) {
    torch(one_, 1, write);
    const frontiers::point held = program_.enter(adopted_);
    torch(one_, 2, read);
    program_.wait(s_, held);
    program_.enqueue(s_, 3, {imported(reads(mine))});
    EXPECT_THAT(found(), IsEmpty());
    program_.enqueue(s_, 4, {imported(writes(mine))});
    EXPECT_THAT(found(), ElementsAre("WAR 2->4"));
}

TEST_F(DetectorLibraries, S5_a_handle_may_belong_to_another_stream_later) {
    program_.enqueue(s_, 1, {imported(writes(mine))});
    observer_script::stream& again = program_.make_stream("again", nullptr, 0, observe::default_kind::none, 0x30);
    torch({0, 0x30}, 2, write);
    program_.enqueue(again, 3, {imported(writes(mine))});
    EXPECT_THAT(found(), ElementsAre("WAW 1->2", "WAW 1->3")) << "of the first one nothing is known but its end";
}

TEST_F(DetectorLibraries, O6_the_host_waits_by_either) {
    const auto order = [&](std::uint32_t from, const auto& wait) {
        program_.enqueue(adopted_, from, {imported(writes(mine))});
        wait();
        torch(two_, from + 1, write);
        torch_.host_waited_for_device(0, line(from + 1));
    };
    order(10, [&] { torch_.host_waited_for_stream(one_, line(1)); });
    order(20, [&] { torch_.host_waited_for_device(0, line(1)); });
    order(30, [&] { program_.host_waits(program_.enter(adopted_)); });
    EXPECT_THAT(found(), IsEmpty());
    order(40, [&] { torch_.host_waited_for_stream(two_, line(1)); });  // control: another stream
    order(50, [&] { torch_.host_waited_for_device(1, line(1)); });     // and another device
    EXPECT_THAT(found(), ElementsAre("WAW 40->41", "WAW 50->51"));
}

TEST_F(DetectorLibraries, O6_a_wait_for_the_device_covers_streams_of_weirs_that_the_library_does_not_know) {
    program_.enqueue(s_, 1, {imported(writes(mine))});
    torch_.host_waited_for_device(0, line(2));
    torch(one_, 3, write);
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(DetectorLibraries, O6_the_host_uses_what_the_library_changes) {
    torch(one_, 1, write);
    program_.host_meets(adopted_);
    program_.host_accesses(imported(automatic(reads(mine))), 2);
    EXPECT_THAT(found(), IsEmpty());
    torch(two_, 3, write);
    program_.host_meets(adopted_);
    program_.host_accesses(imported(automatic(reads(mine))), 4);
    EXPECT_THAT(found(), ElementsAre("host 3->4"));
}

TEST_F(DetectorLibraries, V1_it_does_not_matter_when_weir_lets_go) {
    torch(one_, 1, read, {0, 8});
    program_.enqueue(s_, 2, {imported(writes(mine))});
    program_.drop(mine);
    torch(two_, 3, read, {8, 16});
    EXPECT_THAT(found(), ElementsAre("WAR 1->2", "RAW 2->3"));
}

TEST_F(DetectorLibraries, V1_nor_whether_the_library_has_used_the_memory_by_then) {
    program_.enqueue(s_, 1, {imported(reads(mine))});
    program_.drop(mine);
    program_.enqueue(s_, 2, {imported(writes(mine + 1))});
    program_.drop(mine + 1);
    torch(one_, 3, read);
    EXPECT_THAT(found(), ElementsAre("RAW 2->3"));
    program_.enqueue(s_, 4, {imported(reads(mine + 2), 0x5000)});
    program_.drop(mine + 2);
    torch_.allocated(0x5000, one_, line(5));  // the library gave that up, and it is another memory now
    torch(one_, 6, write, {0, 64}, 0x5000);
    EXPECT_THAT(found(), ElementsAre("RAW 2->3"));
}

TEST_F(DetectorLibraries, L1_memory_of_weirs_that_comes_back_is_other_memory_afterwards) {
    program_.enqueue(s_, 1, {lent(reads(mine))});
    torch(one_, 2, read);
    program_.drop(mine);
    program_.enqueue(a_, 3, {lent(writes(mine + 1))});
    EXPECT_THAT(found(), IsEmpty());
    torch(one_, 4, read);
    EXPECT_THAT(found(), ElementsAre("RAW 3->4"));
}

TEST_F(DetectorLibraries, V1_what_to_add_is_for_the_stream_that_has_to_wait) {
    torch(one_, 1, write);
    program_.enqueue(s_, 2, {imported(automatic(writes(mine)))});
    torch(one_, 3, read);
    const report all = detector_.report();
    ASSERT_EQ(all.races().size(), 2U);
    EXPECT_EQ(all.races()[0].mend, "s.wait(stream_1)  # after train.py:1, before program.cpp:2");
    EXPECT_EQ(all.races()[1].mend, "weir.adopt(stream_1).wait(s)  # after program.cpp:2, before train.py:3");
    EXPECT_EQ(all.races()[1].reason,
              "Weir orders an operation on memory of torch's with torch's current stream, which was another one.");
}

}  // namespace
}  // namespace weir::check
