// What another library's hooks report, and what check finds in it (rule V1). No library takes part.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "backend/timeline.hpp"
#include "weir/check.hpp"
#include "weir/detail/watched_program.hpp"
#include "weir/stream.hpp"

namespace weir::detail {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr std::uint64_t x = 0x1000;  // an address
constexpr std::uint64_t y = 0x9000;
constexpr std::uint64_t event = 0x77;

class Watched : public ::testing::Test {
protected:
    static source_location line(std::uint32_t number) { return {"train.py", "step", number}; }
    static watched_access reads(std::uint64_t memory, order::footprint where = {0, 64}) {
        return {memory, 64, where, access_mode::read, true};
    }
    static watched_access writes(std::uint64_t memory, order::footprint where = {0, 64}) {
        return {memory, 64, where, access_mode::write, true};
    }
    void run(const watched_stream& on, std::uint32_t number, const watched_access& what) {
        program_.operation(on, "aten::op", std::vector{what}, line(number));
    }
    /// x is allocated on a_, written there, and then read on b_, which waits.
    void use_on_both() {
        program_.allocated(x, a_, line(1));
        run(a_, 2, writes(x));
        program_.event_recorded(event, a_, line(3));
        program_.stream_waits(b_, event, line(3));
        run(b_, 4, reads(x));
    }
    /// The races found, as "RAW 1->2" with the lines of the two accesses.
    [[nodiscard]] std::vector<std::string> found() const {
        std::vector<std::string> all;
        for (const race& one : scope_.report().races()) {
            all.push_back(one.kind + " " + std::to_string(one.first.line) + "->" + std::to_string(one.second.line));
        }
        return all;
    }

    check_scope scope_;
    watched_program program_{"torch", "cuda"};
    watched_stream a_{0, 0x10};
    watched_stream b_{0, 0x20};
};

TEST_F(Watched, V1_what_nothing_orders_is_a_race) {
    run(a_, 1, writes(x));
    run(b_, 2, reads(x));
    EXPECT_THAT(found(), ElementsAre("RAW 1->2"));
}

TEST_F(Watched, V1_parts_that_share_no_byte_do_not_race) {
    run(a_, 1, writes(x, {0, 32}));
    run(b_, 2, writes(x, {32, 64}));
    EXPECT_THAT(found(), IsEmpty());
    run(b_, 3, writes(x, {31, 64}));
    EXPECT_THAT(found(), ElementsAre("WAW 1->3"));
}

TEST_F(Watched, V1_an_event_orders_what_was_put_there_before_it) {
    run(a_, 1, writes(x));
    program_.event_recorded(event, a_, line(2));
    run(a_, 3, writes(y));
    program_.stream_waits(b_, event, line(4));
    run(b_, 5, reads(x));
    EXPECT_THAT(found(), IsEmpty());
    run(b_, 6, reads(y));
    EXPECT_THAT(found(), ElementsAre("stale-event 3->6"));
}

TEST_F(Watched, V1_a_wait_for_an_event_that_is_gone_orders_nothing) {
    run(a_, 1, writes(x));
    program_.event_recorded(event, a_, line(2));
    program_.event_gone(event);
    program_.stream_waits(b_, event, line(3));
    run(b_, 4, reads(x));
    EXPECT_THAT(found(), ElementsAre("RAW 1->4"));
}

TEST_F(Watched, V1_the_host_waits_for_an_event_a_stream_or_a_device) {
    const auto order = [&](std::uint32_t from, const auto& wait) {
        run(a_, from, writes(x));
        program_.event_recorded(event, a_, line(from));
        wait();
        run(b_, from + 1, writes(x));
        program_.host_waited_for_device(0, line(from + 1));
    };
    order(10, [&] { program_.host_waited_for_event(event, line(1)); });
    order(20, [&] { program_.host_waited_for_stream(a_, line(1)); });
    order(30, [&] { program_.host_waited_for_device(0, line(1)); });
    EXPECT_THAT(found(), IsEmpty());
    order(40, [&] { program_.host_waited_for_device(1, line(1)); });  // control: another device
    order(50, [&] { program_.host_waited_for_stream(b_, line(1)); });
    EXPECT_THAT(found(), ElementsAre("WAW 40->41", "WAW 50->51"));
}

TEST_F(Watched, V1_the_host_reads_what_a_stream_writes) {
    program_.host_access(reads(y), line(1));  // no stream has used it
    run(a_, 2, writes(x));
    program_.host_access(reads(x), line(3));
    EXPECT_THAT(found(), ElementsAre("host 2->3"));
    program_.host_waited_for_stream(a_, line(4));
    program_.host_access(writes(x), line(5));
    EXPECT_THAT(found(), ElementsAre("host 2->3"));
}

TEST_F(Watched, V1_memory_is_freed_while_another_stream_uses_it) {
    use_on_both();
    program_.freed(x);
    // The next owner, on the stream that the allocator gives it to.
    program_.allocated(x, a_, line(5));
    run(a_, 6, writes(x));
    ASSERT_THAT(found(), UnorderedElementsAre("use-after-free 4->1", "early-reuse 4->6"));
    const race one = scope_.report().races().front();
    EXPECT_EQ(one.mend, "x.record_stream(stream_2)  # x: what train.py:4 uses, before its last owner lets go");
}

TEST_F(Watched, V1_memory_that_is_freed_early_may_go_to_anything_that_its_stream_gets) {
    use_on_both();
    program_.freed(x);
    EXPECT_THAT(found(), IsEmpty());
    program_.allocated(y, b_, line(5));
    run(b_, 6, writes(y));
    EXPECT_THAT(found(), IsEmpty()) << "it is for a_ alone";
    program_.freed(y);
    program_.allocated(y, a_, line(7));
    run(a_, 8, writes(y));
    EXPECT_THAT(found(), ElementsAre("use-after-free 4->1"));
}

TEST_F(Watched, V1_the_program_may_order_what_is_freed_until_its_stream_gets_memory) {
    use_on_both();
    program_.freed(x);
    program_.event_recorded(event + 1, b_, line(5));
    program_.stream_waits(a_, event + 1, line(5));
    program_.allocated(x, a_, line(6));
    run(a_, 7, writes(x));
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(Watched, V1_memory_that_is_freed_early_is_reported_at_the_end) {
    use_on_both();
    program_.freed(x);
    scope_.end();
    EXPECT_THAT(found(), ElementsAre("use-after-free 4->1"));
}

TEST_F(Watched, V1_a_stream_that_gets_memory_of_another_waits_for_its_former_owner) {
    program_.allocated(x, a_, line(1));
    run(a_, 2, writes(x));
    program_.freed(x);
    program_.allocated(x, a_, line(3));
    run(b_, 4, writes(x));
    EXPECT_THAT(found(), ElementsAre("early-reuse 2->4"));
}

TEST_F(Watched, V1_memory_that_is_kept_until_a_stream_is_over_may_be_freed) {
    use_on_both();
    program_.kept_until(x, b_);
    program_.freed(x);
    program_.allocated(x, a_, line(5));
    run(a_, 6, writes(x));
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(Watched, V1_memory_that_is_freed_is_another_memory_afterwards) {
    program_.allocated(x, a_, line(1));
    run(a_, 2, writes(x));
    program_.freed(x);
    program_.allocated(x, b_, line(3));  // given out on another stream: the allocator has waited
    run(b_, 4, writes(x));
    EXPECT_THAT(found(), IsEmpty());
}

TEST_F(Watched, V1_former_owners_that_are_too_many_to_keep_are_counted) {
    constexpr std::uint64_t many = 70'000;
    for (std::uint64_t i = 0; i < many; ++i) {
        program_.allocated(x + i * 64, a_, line(1));
        run(a_, 2, writes(x + i * 64));
        program_.freed(x + i * 64);
    }
    EXPECT_THAT(found(), IsEmpty());
    ASSERT_THAT(scope_.report().unseen(), ElementsAre(HasSubstr("later owners of the memory were not compared")));
    // The newest are kept.
    program_.allocated(x + (many - 1) * 64, a_, line(3));
    run(b_, 4, writes(x + (many - 1) * 64));
    EXPECT_THAT(found(), ElementsAre("early-reuse 2->4"));
}

TEST_F(Watched, V1_the_default_stream_is_called_that) {
    run({0, 0}, 1, writes(x));
    run(b_, 2, reads(x));
    ASSERT_THAT(found(), ElementsAre("default-stream 1->2"));
    const race one = scope_.report().races().front();
    EXPECT_EQ(one.first.stream, "default");
    EXPECT_THAT(one.reason, HasSubstr("the legacy default stream"));
}

TEST_F(Watched, V1_what_to_add_is_in_the_librarys_words) {
    run(a_, 1, writes(x));
    run(b_, 2, reads(x));
    ASSERT_THAT(found(), ElementsAre("RAW 1->2"));
    EXPECT_EQ(scope_.report().races().front().mend,
              "e = stream_1.record_event()  # after train.py:1\n"
              "stream_2.wait_event(e)       # before train.py:2");
}

TEST_F(Watched, V1_what_the_hooks_do_not_see_is_in_the_report_once) {
    program_.unseen("kernels of others");
    program_.unseen("kernels of others");
    EXPECT_THAT(scope_.report().unseen(), ElementsAre("kernels of others"));
}

TEST_F(Watched, V1_what_was_there_before_counts_from_its_first_use) {
    program_.stream_waits(b_, event, line(1));  // an event that was recorded before
    program_.host_waited_for_event(event, line(2));
    program_.kept_until(x, b_);
    program_.freed(x);
    run(a_, 3, writes(x));
    program_.host_waited_for_device(0, line(4));
    program_.freed(x);
    EXPECT_THAT(found(), IsEmpty());
    EXPECT_THAT(scope_.report().unseen(), IsEmpty());
}

TEST_F(Watched, O3_memory_in_use_is_found_by_addresses_inside_of_it) {
    EXPECT_FALSE(program_.block_at(x));
    program_.allocated(x, a_, line(1));
    ASSERT_TRUE(program_.block_at(x));
    EXPECT_FALSE(program_.block_at(x + 1)) << "its size is not known yet";
    run(a_, 2, writes(x));
    for (const std::uint64_t inside : {x, x + 1, x + 63}) {
        ASSERT_TRUE(program_.block_at(inside));
        EXPECT_EQ(program_.block_at(inside)->address, x);
        EXPECT_EQ(program_.block_at(inside)->bytes, 64U);
    }
    EXPECT_FALSE(program_.block_at(x + 64));
    EXPECT_FALSE(program_.block_at(x - 1));
    program_.freed(x);
    EXPECT_FALSE(program_.block_at(x));
    EXPECT_FALSE(program_.block_at(x + 1));
}

TEST(WatchedTimelines, AreGivenBack) {
    const auto first_free = [] {
        backend::timeline_table& all = backend::timeline_table::instance();
        const frontiers::timeline_id one = all.acquire();
        all.release(one);
        return one;
    };
    const frontiers::timeline_id before = first_free();
    for (int i = 0; i < 100; ++i) {
        watched_program program("torch", "cuda");
        program.operation({0, 1}, "aten::op", {}, {});
        program.operation({0, 2}, "aten::op", {}, {});
        EXPECT_EQ(first_free(), before + 2);
    }
    EXPECT_EQ(first_free(), before);
    // A stream of Weir begins where the program ended, and has nothing pending.
    const stream later(cpu());
    EXPECT_TRUE(later.done());
}

}  // namespace
}  // namespace weir::detail
