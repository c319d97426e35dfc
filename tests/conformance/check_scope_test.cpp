// Rule V1: what a check_scope does, on real streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "check_support.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::duplicate;
using test::here;
using test::last;
using test::set;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class CheckScope {
protected:
    CheckScope() { here().synchronize(); }

    ordering_scope manual_{ordering_mode::manual};
    stream a_{here(), {0, "load"}};
    stream b_{here(), {0, "work"}};
    array x_ = zeros({test::size}, dtype::float64, a_);
    array y_ = zeros({test::size}, dtype::float64, a_);
};

WEIR_CONFORMANCE_F(CheckScope, V1_raise_throws_where_the_race_is_completed_and_leaves_the_program_safe) {
    const check_scope scope({check_mode::raise, false});
    testing::gate gate;
    gate.hold(a_);
    set(a_, x_, 1);
    EXPECT_THAT(
        [&] { duplicate(b_, x_, y_); },
        ThrowsMessage<race_error>(AllOf(HasSubstr("RAW"), HasSubstr("load.record()"), HasSubstr("work.wait(e)"))));
    EXPECT_NO_THROW(duplicate(b_, y_, y_)) << "what follows is no race";
    gate.open();
    here().synchronize();
    EXPECT_EQ(last(y_), 1) << "the operation was enqueued, safely";
}

WEIR_CONFORMANCE_F(CheckScope, V1_warn_prints_when_the_call_returns) {
    const check_scope scope({check_mode::warn, false});
    set(a_, x_, 1);
    ::testing::internal::CaptureStderr();
    duplicate(b_, x_, y_);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("weir check: RAW race on memory"));
    here().synchronize();
}

WEIR_CONFORMANCE_F(CheckScope, V1_the_race_of_a_drop_is_thrown_at_the_end_of_the_scope) {
    check_scope scope({check_mode::raise, false});
    {
        const array dropped = empty({test::size}, dtype::float64, a_);
        set(b_, dropped, 1);
    }
    EXPECT_THROW(scope.end(), race_error);
    EXPECT_NO_THROW(scope.end()) << "once";
    EXPECT_NO_THROW(here().synchronize());
    EXPECT_NO_THROW(set(a_, x_, 1)) << "nothing afterwards";
    EXPECT_EQ(scope.report().size(), 1U);
}

WEIR_CONFORMANCE_F(CheckScope, V1_a_scope_that_ends_by_itself_prints_the_race_of_a_drop) {
    for (const check_mode mode : {check_mode::raise, check_mode::warn}) {
        ::testing::internal::CaptureStderr();
        {
            const check_scope scope({mode, false});
            const array dropped = empty({test::size}, dtype::float64, a_);
            set(b_, dropped, 1);
        }
        EXPECT_NO_THROW(set(a_, x_, 1)) << "nothing afterwards";
        EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("weir check: use-after-free"));
        here().synchronize();
    }
}

WEIR_CONFORMANCE_F(CheckScope, V1_work_that_happens_to_be_over_orders_nothing) {
    const check_scope scope;
    std::atomic<bool> is_over{false};
    set(a_, x_, 1);
    parallel_for(a_, 1, [&](std::size_t) { is_over = true; });
    const stream other(here());
    while (!is_over) {
        // Time goes on under a virtual clock, and Weir does not know what the program sees.
        parallel_for(other, 1, [](std::size_t) {}).synchronize();
    }
    duplicate(b_, x_, y_);
    here().synchronize();
    EXPECT_EQ(scope.report().size(), 1U);
}

/// Objects that a host may wait for or query.
using host_wait = std::function<void(const completion& written, const event& recorded, const stream& s)>;
const std::vector<std::pair<const char*, host_wait>> host_waits = {
    {"completion", [](const completion& c, const event&, const stream&) { c.synchronize(); }},
    {"event", [](const completion&, const event& e, const stream&) { e.wait(); }},
    {"stream", [](const completion&, const event&, const stream& s) { s.synchronize(); }},
    {"device", [](const completion&, const event&, const stream& s) { s.device().synchronize(); }},
    {"question about an event",
     [](const completion&, const event& e, const stream&) {
         while (!e.done()) {
             std::this_thread::yield();
         }
     }},
    {"question about a stream",
     [](const completion&, const event&, const stream& s) {
         while (!s.done()) {
             std::this_thread::yield();
         }
     }},
};

WEIR_CONFORMANCE_F(CheckScope, F4_each_way_of_waiting_orders_what_comes_later) {
    for (const auto& [name, wait] : host_waits) {
        SCOPED_TRACE(name);
        const check_scope scope;
        const completion written = set(a_, x_, 1);
        wait(written, a_.record(), a_);
        duplicate(b_, x_, y_);
        b_.synchronize();
        EXPECT_TRUE(scope.report().empty()) << scope.report().to_string();
    }
}

WEIR_CONFORMANCE_F(CheckScope, F4_each_way_of_waiting_for_something_else_orders_nothing) {
    for (const auto& [name, wait] : host_waits) {
        SCOPED_TRACE(name);
        const stream other(here() == cpu() ? sim(5) : cpu());
        array z = zeros({test::size}, dtype::float64, other);
        const check_scope scope;
        set(on(a_).label("write"), x_, 1);
        const completion written = set(other, z, 1);
        wait(written, other.record(), other);
        duplicate(on(b_).label("read"), x_, y_);
        ASSERT_EQ(scope.report().size(), 1U) << scope.report().to_string();
        EXPECT_EQ(scope.report().races()[0].kind, "RAW");
        EXPECT_EQ(scope.report().races()[0].first.label, "write");
        EXPECT_EQ(scope.report().races()[0].second.label, "read");
        a_.synchronize();
        b_.synchronize();
    }
}

WEIR_CONFORMANCE_F(CheckScope, F4_a_question_that_was_answered_done_orders) {
    const check_scope scope;
    const completion written = set(a_, x_, 1);
    while (!written.done()) {
        std::this_thread::yield();
    }
    duplicate(b_, x_, y_);
    here().synchronize();
    EXPECT_TRUE(scope.report().empty()) << scope.report().to_string();
}

WEIR_CONFORMANCE_F(CheckScope, F4_an_array_that_was_found_ready_is_ordered) {
    const check_scope scope;
    set(a_, x_, 1);
    while (!x_.ready()) {
        std::this_thread::yield();
    }
    EXPECT_EQ(last(x_), 1);
    duplicate(b_, x_, y_);
    here().synchronize();
    EXPECT_TRUE(scope.report().empty()) << scope.report().to_string();
}

WEIR_CONFORMANCE_F(CheckScope, F4_an_array_that_was_not_found_ready_is_not_ordered) {
    const check_scope scope;
    testing::gate gate;
    gate.hold(a_);
    set(a_, x_, 1);
    EXPECT_FALSE(x_.ready());
    duplicate(b_, x_, y_);
    gate.open();
    here().synchronize();
    EXPECT_EQ(scope.report().size(), 1U);
}

WEIR_CONFORMANCE_F(CheckScope, F4_a_question_that_was_not_answered_done_orders_nothing) {
    const check_scope scope;
    testing::gate gate;
    gate.hold(a_);
    const completion written = set(a_, x_, 1);
    EXPECT_FALSE(written.done());
    duplicate(b_, x_, y_);
    gate.open();
    here().synchronize();
    EXPECT_EQ(scope.report().size(), 1U);
}

WEIR_CONFORMANCE_F(CheckScope, F10_a_new_stream_comes_after_what_the_host_waited_for) {
    const check_scope scope;
    set(a_, x_, 1);
    a_.synchronize();
    const stream young(here(), {0, "young"});
    duplicate(young, x_, y_);
    here().synchronize();
    EXPECT_TRUE(scope.report().empty()) << scope.report().to_string();
}

WEIR_CONFORMANCE_F(CheckScope, F10_a_new_stream_comes_after_nothing_that_the_host_has_not_waited_for) {
    const check_scope scope;
    const completion before = set(a_, y_, 1);
    set(on(a_).label("write"), x_, 1);
    before.synchronize();
    const stream young(here(), {0, "young"});
    duplicate(on(young).label("read"), x_, y_);
    young.synchronize();
    ASSERT_EQ(scope.report().size(), 1U) << scope.report().to_string();
    EXPECT_EQ(scope.report().races()[0].first.label, "write");
    EXPECT_EQ(scope.report().races()[0].second.label, "read");
    a_.synchronize();
}

WEIR_CONFORMANCE_F(CheckScope, O6_the_host_reads_too_early) {
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

WEIR_CONFORMANCE_F(CheckScope, V1_assume_manual_tells_what_only_weir_orders) {
    const ordering_scope automatic(ordering_mode::automatic);
    const check_scope lenient;
    const check_scope strict({check_mode::collect, true});
    set(a_, x_, 1);
    duplicate(b_, x_, y_);
    here().synchronize();
    EXPECT_TRUE(lenient.report().empty());
    EXPECT_EQ(strict.report().size(), 1U);
}

WEIR_CONFORMANCE_F(CheckScope, O5_returning_to_automatic_is_safe_but_what_was_manual_before_may_race) {
    const check_scope scope;
    testing::gate gate;
    gate.hold(a_);
    set(a_, x_, 1);
    {
        const ordering_scope automatic(ordering_mode::automatic);
        duplicate(b_, x_, y_);  // Weir orders this access after the manual one
    }
    gate.open();
    here().synchronize();
    EXPECT_TRUE(scope.report().empty()) << scope.report().to_string();
    EXPECT_EQ(last(y_), 1);
}

WEIR_CONFORMANCE_F(CheckScope, V1_threads_may_work_while_scopes_come_and_go) {
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
    here().synchronize();
}

}  // namespace
}  // namespace weir
