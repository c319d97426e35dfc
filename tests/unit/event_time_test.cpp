// Timed events (API: elapsed_ms), on the CPU and on a simulated device under a virtual clock.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "weir/weir.hpp"

namespace weir {
namespace {

using namespace std::chrono_literals;
using testing::gate;

constexpr event_options timed{.timing = true};

void expect_refused(const event& start, const event& end, const std::string& because) {
    try {
        static_cast<void>(start.elapsed_ms(end));
        FAIL() << "a time was told; expected: " << because;
    } catch (const state_error& refused) {
        EXPECT_NE(std::string(refused.what()).find(because), std::string::npos) << refused.what();
    }
}

TEST(TimedEvents, TellTheTimeOfTheWorkBetweenThem) {
    const stream s;
    const stream other;
    gate held;
    held.hold(s);
    std::atomic<bool> first_runs{false};
    std::atomic<bool> second_runs{false};
    const event start = s.record(timed);
    // Two operations that wait for each other: the time between the events is at least the time between the two points of time that the
    // second one sees.
    std::chrono::steady_clock::time_point met;
    std::chrono::steady_clock::time_point left;
    parallel_for(s, 1, [&](auto) {
        met = std::chrono::steady_clock::now();
        first_runs = true;
        while (!second_runs) {
            std::this_thread::yield();
        }
        left = std::chrono::steady_clock::now();
    });
    const event end = s.record(timed);
    host_task(other, [&] {
        while (!first_runs) {
            std::this_thread::yield();
        }
        second_runs = true;
    });
    expect_refused(start, end, "the start of the time asked for is not over yet: call synchronize()");
    const auto before = std::chrono::steady_clock::now();
    held.open();
    end.synchronize();
    const auto after = std::chrono::steady_clock::now();
    const double elapsed = start.elapsed_ms(end);
    EXPECT_GE(elapsed, std::chrono::duration<double>(left - met).count() * 1000);
    EXPECT_LE(elapsed, std::chrono::duration<double>(after - before).count() * 1000);
    EXPECT_EQ(end.elapsed_ms(start), -elapsed);
    EXPECT_EQ(start.elapsed_ms(start), 0);
}

TEST(TimedEvents, AreInTheOrderOfTheirStream) {
    const stream s;
    std::vector<event> moments;
    for (int i = 0; i < 100; ++i) {
        moments.push_back(s.record(timed));
    }
    s.synchronize();
    for (std::size_t i = 1; i < moments.size(); ++i) {
        EXPECT_GE(moments[i - 1].elapsed_ms(moments[i]), 0);
    }
}

TEST(TimedEvents, TakeAnEpochOfTheirOwn) {
    gate held;
    const stream s;
    held.hold(s);
    const event before = s.record(timed);
    const event after = s.record(timed);
    EXPECT_NE(before.recorded().epoch(detail::key), after.recorded().epoch(detail::key));
    const stream waiting;
    waiting.wait(before);
    bool ran = false;
    const completion waited = parallel_for(waiting, 1, [&](auto) { ran = true; });
    EXPECT_FALSE(waited.done());
    held.open();
    waited.synchronize();
    EXPECT_TRUE(ran);
}

TEST(TimedEvents, RefuseWhatHasNoTime) {
    const stream s;
    const event start = s.record(timed);
    const event not_timed = s.record();
    const event never(timed);
    s.synchronize();
    expect_refused(start, not_timed, "the end of the time asked for is not timed: make it with");
    expect_refused(not_timed, start, "the start of the time asked for is not timed");
    expect_refused(start, never, "the end of the time asked for was never recorded");
    expect_refused(start, parallel_for(s, 1, [](auto) {}), "is not timed");
    EXPECT_TRUE(start.is_timed());
    EXPECT_FALSE(not_timed.is_timed());
}

TEST(TimedEvents, ARecordOverwritesTheOneBefore) {
    gate held;
    const stream s;
    const event start = s.record(timed);
    event end(timed);
    end.record(s);
    s.synchronize();
    const double first = start.elapsed_ms(end);
    held.hold(s);
    end.record(s);
    expect_refused(start, end, "the end of the time asked for is not over yet");
    held.open();
    end.synchronize();
    EXPECT_GE(start.elapsed_ms(end), first);
}

TEST(TimedEvents, AClosedStreamTakesNone) {
    stream s;
    event e(timed);
    e.record(s);
    s.synchronize();
    const completion held_before = e.recorded();
    s.close();
    EXPECT_THROW(e.record(s), state_error);
    EXPECT_EQ(e.recorded().epoch(detail::key), held_before.epoch(detail::key));
}

TEST(TimedEvents, OnADeviceWithoutQueuesAreOverAtOnce) {
    const stream s(cpu_inline());
    const event start = s.record(timed);
    const event end = s.record(timed);
    EXPECT_GE(start.elapsed_ms(end), 0);
}

TEST(TimedEvents, UnderAVirtualClockTellVirtualTimeToTheNanosecond) {
    const testing::simulated scope(
        sim(0), {.virtual_clock = true, .cost = [](const testing::sim_operation&) { return 250us; }});
    const stream s(sim(0));
    const event start = s.record(timed);
    parallel_for(s, 1, [](auto) {});
    parallel_for(s, 1, [](auto) {});
    const event middle = s.record(timed);
    parallel_for(s, 1, [](auto) {});
    const event end = s.record(timed);
    end.synchronize();
    EXPECT_DOUBLE_EQ(start.elapsed_ms(middle), 0.5);
    EXPECT_DOUBLE_EQ(start.elapsed_ms(end), 0.75);
}

TEST(TimedEvents, OfTwoDevicesHaveNoTimeBetweenThem) {
    const stream here;
    const stream there(sim(0));
    const event start = here.record(timed);
    const event end = there.record(timed);
    start.synchronize();
    end.synchronize();
    expect_refused(start, end, "two devices, cpu and sim:0");
}

TEST(S9, EventsBuffersCompletionsAndDevicesPrintWhatTheyAre) {
    gate held;
    const stream s(cpu(), {.priority = 0, .name = "load"});
    EXPECT_EQ(cpu().to_string(), "<weir.device cpu>");
    const event never;
    EXPECT_EQ(never.to_string(), "<weir.event #" + std::to_string(never.unique_id()) + " never recorded>");
    held.hold(s);
    const event e = s.record(timed);
    const std::string number = std::to_string(e.unique_id());
    EXPECT_EQ(e.to_string(), "<weir.event #" + number + " timed on cpu, not over>");
    const completion c = parallel_for(s, 1, [](auto) {});
    const std::string what = "<weir.completion epoch " + std::to_string(c.epoch(detail::key)) + " of \"load\" on cpu, ";
    EXPECT_EQ(c.to_string(), what + "not over>");
    held.open();
    c.synchronize();
    EXPECT_EQ(c.to_string(), what + "over>");
    EXPECT_EQ(e.to_string(), "<weir.event #" + number + " timed on cpu, over>");
    EXPECT_EQ(completion().to_string(), "<weir.completion of nothing>");
    const buffer b(100, s);
    const std::string text = b.to_string();
    EXPECT_EQ(text.find("<weir.buffer #" + std::to_string(b.unique_id()) + " 100 bytes at 0x"), 0U) << text;
    EXPECT_NE(text.find(" on cpu>"), std::string::npos) << text;
    EXPECT_EQ(buffer().to_string(), "<weir.buffer of nothing>");
}

TEST(S9, ACompletionOutlivesItsStream) {
    completion last;
    {
        const stream gone(cpu(), {.priority = 0, .name = "gone"});
        last = parallel_for(gone, 1, [](auto) {});
        last.synchronize();
    }
    // Soon another stream gets the timeline, and must not be taken for the one that is gone.
    std::vector<stream> others(20);
    std::string text;
    do {
        text = last.to_string();
    } while (text.find("gone\"") != std::string::npos);  // as long as its queue still exists
    EXPECT_NE(text.find("of a stream that is gone, over>"), std::string::npos) << text;
}

}  // namespace
}  // namespace weir
