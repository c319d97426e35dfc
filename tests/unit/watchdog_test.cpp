// The watchdog reports why the host waits so long. Each report opens what holds the host up, so that no test sleeps.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/timeline.hpp"
#include "runtime/diagnostics/standstill.hpp"
#include "runtime/streams/stream_state.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using namespace std::chrono_literals;
using testing::gate;

class Watchdog : public ::testing::Test {
protected:
    ~Watchdog() override { set_watchdog(60s); }

    /// Reports go to `told`; each is followed by `then`.
    void watch(std::function<void()> then, std::chrono::milliseconds patience = 4ms) {
        set_watchdog(patience, [this, then = std::move(then)](const std::string& text) {
            told.push_back(text);
            then();
        });
    }
    /// Expects the parts in this order.
    static void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
        std::size_t from = 0;
        for (const std::string& part : parts) {
            const std::size_t found = text.find(part, from);
            ASSERT_NE(found, std::string::npos) << "\"" << part << "\" is not in its place in:\n" << text;
            from = found + part.size();
        }
    }
    static std::string line(unsigned number) { return "watchdog_test.cpp:" + std::to_string(number) + ")"; }
    static on at(const stream& s, unsigned& line, source_location where = source_location::current()) {
        line = where.line;
        return on(s, where);
    }

    std::vector<std::string> told;
    gate held;
};

TEST_F(Watchdog, TellsTheWholeWayFromTheHostToTheGate) {
    const stream x(cpu(), {.priority = 0, .name = "x"});
    const stream y(cpu(), {.priority = 0, .name = "y"});
    const stream z(cpu(), {.priority = 0, .name = "z"});
    array a = empty(4, dtype::float64, x);
    held.hold(x);
    const unsigned gate_line = __LINE__ - 1;
    unsigned first = 0;
    unsigned second = 0;
    unsigned third = 0;
    parallel_for(
        at(x, first).label("first"), 4, [](auto, auto) {}, out(a.view<double>()));
    parallel_for(
        at(y, second).label("second"), 4, [](auto, auto) {}, in(a.view<double>()));
    z.wait(y);
    const completion last = parallel_for(at(z, third).label("third"), 1, [](auto) {});
    watch([&] { held.open(); });
    last.synchronize();
    const unsigned wait_line = __LINE__ - 1;
    ASSERT_EQ(told.size(), 1U);
    expect_parts(told[0], {"0.004 s", "watchdog_test.cpp:" + std::to_string(wait_line), "\"third\"", line(third),
                           "stream \"z\" of cpu", "behind a wait of the program's", "waits for\n", "\"second\"",
                           line(second), "stream \"y\"", "waits for\n", "\"first\"", line(first), "stream \"x\"",
                           "behind a gate", line(gate_line), "not open"});
}

TEST_F(Watchdog, TellsOnceForEachWait) {
    const stream s;
    const stream other;
    held.hold(s);
    gate second;
    second.hold(other);
    watch([&] { (told.size() == 1 ? held : second).open(); });
    s.synchronize();
    other.record().wait();
    EXPECT_EQ(told.size(), 2U);
}

TEST_F(Watchdog, TellsOfAHostTaskAndOfAnOperationThatDoNotEnd) {
    const stream s;
    std::atomic<bool> go{false};
    const auto until_told = [&] {
        while (!go) {
            std::this_thread::yield();
        }
    };
    watch([&] { go = true; });
    unsigned task = 0;
    host_task(at(s, task).label("load"), until_told);
    s.synchronize();
    ASSERT_EQ(told.size(), 1U);
    expect_parts(told[0], {"\"load\"", line(task), "a host task that has not returned"});
    go = false;
    parallel_for(on(s).label("spin"), 1, [&](auto) { until_told(); }).synchronize();
    ASSERT_EQ(told.size(), 2U);
    expect_parts(told[1], {"\"spin\"", "which runs, or is about to"});
}

TEST_F(Watchdog, AHostViewAndMemoryThatHasToBeWaitedForAreWatchedToo) {
    const stream s;
    array x = zeros(4, dtype::float64, s);
    s.synchronize();
    held.hold(s);
    fill(s, x, 1);
    watch([&] { held.open(); });
    EXPECT_EQ(x.read<double>()[0], 1);
    const unsigned read_line = __LINE__ - 1;
    ASSERT_EQ(told.size(), 1U);
    expect_parts(told[0], {"watchdog_test.cpp:" + std::to_string(read_line), "behind a gate"});
}

TEST_F(Watchdog, SaysThatTheHostWaitsForMemory) {
    const stream x(cpu(), {.priority = 0, .name = "x"});
    const stream y(cpu(), {.priority = 0, .name = "y"});
    constexpr std::int64_t half = 1 << 20;
    cpu().synchronize();
    memory::trim(cpu());
    const memory::statistics before = memory::stats(cpu());
    memory::limit(cpu(), before.live + before.pending + before.cached + 2 * half);
    std::atomic<bool> go{false};
    {
        { const buffer whole(2 * half, x); }
        array low = empty(half, dtype::uint8, x);
        array high = empty(half, dtype::uint8, y);
        const auto until_told = [&](auto, auto) {
            while (!go) {
                std::this_thread::yield();
            }
        };
        parallel_for(on(x).label("slow"), 1, until_told, out(low.view<std::uint8_t>()));
        parallel_for(on(y).label("slow"), 1, until_told, out(high.view<std::uint8_t>()));
    }
    watch([&] { go = true; });
    array both = empty(2 * half, dtype::uint8, x);
    const unsigned line_of_wait = __LINE__ - 1;
    ASSERT_GE(told.size(), 1U);
    expect_parts(told[0], {"watchdog_test.cpp:" + std::to_string(line_of_wait), ", for memory that is free after\n",
                           "\"slow\"", "which runs, or is about to"});
    memory::limit(cpu(), before.limit);
}

TEST_F(Watchdog, OnlyProgressOnTheWayIsProgress) {
    const stream x;
    const stream y;
    const stream elsewhere;
    gate second;
    held.hold(x);
    const completion passed = parallel_for(x, 1, [](auto) {});
    second.hold(x);
    y.wait(x);
    const completion last = parallel_for(y, 1, [](auto) {});
    const auto look = [&] { return runtime::why_not_over({last.timeline(detail::key), last.epoch(detail::key)}); };
    const runtime::standstill before = look();
    EXPECT_EQ(before.reached.size(), 2U);
    parallel_for(elsewhere, 1, [](auto) {}).synchronize();
    EXPECT_EQ(look().reached, before.reached);
    held.open();
    passed.synchronize();
    EXPECT_NE(look().reached, before.reached);
    second.open();
    last.synchronize();
    EXPECT_NE(look().story.find("which is over"), std::string::npos) << look().story;
}

TEST_F(Watchdog, AWayThroughManyStreamsIsNotFollowedForEver) {
    std::vector<stream> streams(100);
    held.hold(streams[0]);
    for (std::size_t i = 1; i < streams.size(); ++i) {
        streams[i].wait(streams[i - 1]);
    }
    const completion last = streams.back().record().recorded();
    const runtime::standstill found = runtime::why_not_over({last.timeline(detail::key), last.epoch(detail::key)});
    EXPECT_LT(found.reached.size(), 50U);
    expect_parts(found.story, {"a wait of the program's", "... and so on"});
}

TEST_F(Watchdog, ZeroSwitchesItOff) {
    set_watchdog(4ms);
    EXPECT_EQ(backend::timeline_table::instance().watch().every, 1ms);
    set_watchdog(0ms);
    EXPECT_EQ(backend::timeline_table::instance().watch().every, 0ms);
}

TEST_F(Watchdog, AReportThatThrowsDoesNotEndTheWait) {
    const stream s;
    held.hold(s);
    watch([&] {
        held.open();
        throw std::runtime_error("no disk");
    });
    ::testing::internal::CaptureStderr();
    s.synchronize();
    EXPECT_NE(::testing::internal::GetCapturedStderr().find("threw"), std::string::npos);
    EXPECT_EQ(told.size(), 1U);
}

using WatchdogDeathTest = Watchdog;

/// In a process of its own: waits behind a gate that stays closed, and ends the process once anything is printed.
[[noreturn]] void wait_until_told(gate& held) {
    std::array<int, 2> ends{};
    const int error_output = ::dup(STDERR_FILENO);
    if (::pipe(ends.data()) != 0 || ::dup2(ends[1], STDERR_FILENO) < 0) {
        std::_Exit(1);
    }
    const stream s(cpu(), {.priority = 0, .name = "held"});
    held.hold(s);
    std::thread([s] { s.synchronize(); }).detach();
    std::array<char, 4096> text{};
    const ::ssize_t length = ::read(ends[0], text.data(), text.size());
    const bool copied = length > 0 && ::write(error_output, text.data(), static_cast<std::size_t>(length)) == length;
    std::_Exit(copied ? 0 : 1);
}

TEST_F(WatchdogDeathTest, TheEnvironmentSetsThePatienceAndTheReportGoesToTheStandardErrorOutput) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            ::setenv("WEIR_WATCHDOG", "0.004", 1);
            wait_until_told(held);
        },
        ::testing::ExitedWithCode(0), "the host has waited for 0.004 s or more");
}

TEST(Standstill, WhatComesAfterIsFoundByWayOfOtherStreams) {
    const stream x(cpu());
    const stream y(cpu());
    const stream z(cpu());
    gate held;
    held.hold(x);
    const auto one_on = [](const stream& s) {
        parallel_for(s, 1, [](auto) {});
        return s.state(detail::key).tail().at;
    };
    const auto first = one_on(x);
    y.wait(x);
    const auto second = one_on(y);
    z.wait(y);
    const auto third = one_on(z);
    EXPECT_TRUE(runtime::comes_after(second, first));
    EXPECT_TRUE(runtime::comes_after(third, first)) << "by way of the stream between them";
    EXPECT_FALSE(runtime::comes_after(first, third));
    held.open();
    z.synchronize();
}

}  // namespace
}  // namespace weir
