// Rule V1: what a check_scope does, on real streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "check_support.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::duplicate;
using test::last;
using test::set;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class CheckScope : public ::testing::Test {
protected:
    CheckScope() { cpu().synchronize(); }

    ordering_scope manual_{ordering_mode::manual};
    stream a_{cpu(), {0, "load"}};
    stream b_{cpu(), {0, "work"}};
    array x_ = zeros({test::size}, dtype::float64, a_);
    array y_ = zeros({test::size}, dtype::float64, a_);
};

TEST_F(CheckScope, V1_raise_throws_where_the_race_is_completed_and_leaves_the_program_safe) {
    const check_scope scope({check_mode::raise, false});
    testing::gate gate;
    gate.hold(a_);
    set(a_, x_, 1);
    EXPECT_THAT(
        [&] { duplicate(b_, x_, y_); },
        ThrowsMessage<race_error>(AllOf(HasSubstr("RAW"), HasSubstr("load.record()"), HasSubstr("work.wait(e)"))));
    EXPECT_NO_THROW(duplicate(b_, y_, y_)) << "what follows is no race";
    gate.open();
    cpu().synchronize();
    EXPECT_EQ(last(y_), 1) << "the operation was enqueued, safely";
}

TEST_F(CheckScope, V1_warn_prints_when_the_call_returns) {
    const check_scope scope({check_mode::warn, false});
    set(a_, x_, 1);
    ::testing::internal::CaptureStderr();
    duplicate(b_, x_, y_);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("weir check: RAW race on memory"));
    cpu().synchronize();
}

TEST_F(CheckScope, V1_work_that_happens_to_be_over_orders_nothing) {
    const check_scope scope;
    std::atomic<bool> is_over{false};
    set(a_, x_, 1);
    parallel_for(a_, 1, [&](std::size_t) { is_over = true; });
    while (!is_over) {
        std::this_thread::yield();  // Weir does not know that the program looks
    }
    duplicate(b_, x_, y_);
    cpu().synchronize();
    EXPECT_EQ(scope.report().size(), 1U);
}

TEST_F(CheckScope, F4_a_question_that_was_answered_done_orders) {
    const check_scope scope;
    const completion written = set(a_, x_, 1);
    while (!written.done()) {
        std::this_thread::yield();
    }
    duplicate(b_, x_, y_);
    cpu().synchronize();
    EXPECT_TRUE(scope.report().empty()) << scope.report().to_string();
}

TEST_F(CheckScope, F4_a_question_that_was_not_answered_done_orders_nothing) {
    const check_scope scope;
    testing::gate gate;
    gate.hold(a_);
    const completion written = set(a_, x_, 1);
    EXPECT_FALSE(written.done());
    duplicate(b_, x_, y_);
    gate.open();
    cpu().synchronize();
    EXPECT_EQ(scope.report().size(), 1U);
}

TEST_F(CheckScope, F10_a_new_stream_comes_after_what_the_host_waited_for) {
    const check_scope scope;
    set(a_, x_, 1);
    a_.synchronize();
    const stream young(cpu(), {0, "young"});
    duplicate(young, x_, y_);
    cpu().synchronize();
    EXPECT_TRUE(scope.report().empty()) << scope.report().to_string();
}

TEST_F(CheckScope, O6_the_host_reads_too_early) {
    const check_scope scope;
    set(a_, x_, 1);
    EXPECT_EQ(last(x_), 1) << "safe nevertheless";
    const report found = scope.report();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found.races()[0].kind, "host");
    EXPECT_THAT(found.races()[0].mend, AllOf(HasSubstr("load.record()"), HasSubstr("e.wait();")));
    a_.synchronize();
    EXPECT_EQ(last(x_), 1);
    EXPECT_EQ(scope.report().size(), 1U);
}

TEST_F(CheckScope, V1_assume_manual_tells_what_only_weir_orders) {
    const ordering_scope automatic(ordering_mode::automatic);
    const check_scope lenient;
    const check_scope strict({check_mode::collect, true});
    set(a_, x_, 1);
    duplicate(b_, x_, y_);
    cpu().synchronize();
    EXPECT_TRUE(lenient.report().empty());
    EXPECT_EQ(strict.report().size(), 1U);
}

TEST_F(CheckScope, O5_returning_to_automatic_is_safe_but_what_was_manual_before_may_race) {
    const check_scope scope;
    testing::gate gate;
    gate.hold(a_);
    set(a_, x_, 1);
    {
        const ordering_scope automatic(ordering_mode::automatic);
        duplicate(b_, x_, y_);  // Weir orders this access after the manual one
    }
    gate.open();
    cpu().synchronize();
    EXPECT_TRUE(scope.report().empty()) << scope.report().to_string();
    EXPECT_EQ(last(y_), 1);
}

TEST_F(CheckScope, V1_threads_may_work_while_scopes_come_and_go) {
    const auto work = [&](const stream& s) {
        for (int i = 0; i < 300; ++i) {
            set(s, x_, i);
            duplicate(s, x_, y_);
        }
    };
    std::thread first([&] { work(a_); });
    std::thread second([&] { work(b_); });
    for (int i = 0; i < 50; ++i) {
        const check_scope scope;
        const trace_scope trace;
        static_cast<void>(scope.report());
        static_cast<void>(trace.summary());
    }
    first.join();
    second.join();
    cpu().synchronize();
}

}  // namespace
}  // namespace weir
