// A simulated accelerator under a virtual clock: nothing runs by itself, and the seed decides what comes next.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "observe/observers.hpp"
#include "runtime/devices/device_state.hpp"
#include "support/effort.hpp"
#include "support/time_limit.hpp"
#include "support/tracked.hpp"
#include "weir/testing.hpp"

namespace weir {
namespace {

using test::enqueue;
using test::time_limit;
using testing::gate;
using testing::simulated;
using namespace std::chrono_literals;

/// A time limit in seconds for a test that would hang if it failed.
constexpr unsigned enough = test::sanitized ? 120 : 30;

/// When operations ran, by their device's time.
class stopwatch final : public observe::observer {
public:
    using run = observe::observed_execution;
    stopwatch() { observe::observers::add(*this); }
    ~stopwatch() override { observe::observers::remove(*this); }
    [[nodiscard]] bool wants_times() const noexcept override { return true; }
    void executed(const observe::observed_execution& what) noexcept override {
        const std::lock_guard lock(mutex_);
        runs.push_back(what);
    }
    /// The most operations that ran at once.
    [[nodiscard]] int most_at_once() const {
        int most = 0;
        for (const run& one : runs) {
            most = std::max(most, static_cast<int>(std::count_if(runs.begin(), runs.end(), [&](const run& other) {
                                return other.start <= one.start && one.start < other.end;
                            })));
        }
        return most;
    }
    std::vector<run> runs;

private:
    std::mutex mutex_;
};

std::vector<stream> streams_of(device where, int count) {
    std::vector<stream> made;
    for (int i = 0; i < count; ++i) {
        made.emplace_back(where);
    }
    return made;
}

/// The start and end of each operation of a program of eight streams with five operations each and waits between them.
struct course {
    std::vector<int> order;
    std::vector<std::chrono::nanoseconds> times;
    friend bool operator==(const course&, const course&) = default;
};

course course_by(const testing::sim_settings& settings) {
    const simulated scope(sim(2), settings);
    const auto begin = sim(2).state(detail::key).driver().now();
    course taken;
    const stopwatch watch;
    {
        const std::vector<stream> streams = streams_of(sim(2), 8);
        for (int k = 0; k < 5; ++k) {
            for (int i = 0; i < 8; ++i) {
                const stream& s = streams[static_cast<std::size_t>(i)];
                if (i % 3 == k) {
                    s.wait(streams[static_cast<std::size_t>((i + 1) % 8)]);
                }
                enqueue(s, {}, [&taken, i, k] { taken.order.push_back(10 * i + k); });
            }
        }
        sim(2).synchronize();
    }
    for (const stopwatch::run& one : watch.runs) {
        taken.times.push_back(one.start - begin);
        taken.times.push_back(one.end - begin);
    }
    return taken;
}

TEST(VirtualClock, NothingRunsByItselfAndAWaitDrivesIt) {
    const simulated told(sim(2), {.virtual_clock = true});
    const stream s(sim(2));
    const std::thread::id me = std::this_thread::get_id();
    std::vector<std::thread::id> ran_on;
    for (int i = 0; i < 3; ++i) {
        enqueue(s, {}, [&] { ran_on.push_back(std::this_thread::get_id()); });
    }
    // Threads of real devices need time to run the work: here there is no thread that would.
    std::thread idle([] {});
    idle.join();
    EXPECT_TRUE(ran_on.empty());
    s.synchronize();
    EXPECT_EQ(ran_on, std::vector<std::thread::id>(3, me));
}

TEST(VirtualClock, AskingAgainAndAgainGetsThere) {
    const time_limit limit(enough, "a stream that is asked again and again");
    const simulated told(sim(2), {.virtual_clock = true});
    const stream s(sim(2));
    int ran = 0;
    for (int i = 0; i < 10; ++i) {
        enqueue(s, {}, [&] { ++ran; });
    }
    int asked = 1;
    while (!s.done()) {
        ++asked;
    }
    EXPECT_EQ(ran, 10);
    EXPECT_EQ(asked, 10) << "each answer takes one step";
}

TEST(VirtualClock, TheSameSeedGivesTheSameCourseAndOthersGiveOthers) {
    std::set<std::vector<int>> orders;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        const course first = course_by({.engines = 3, .seed = seed, .virtual_clock = true});
        EXPECT_EQ(first.order.size(), 40U);
        EXPECT_EQ(first.times.size(), 80U);
        EXPECT_EQ(course_by({.engines = 3, .seed = seed, .virtual_clock = true}), first) << seed;
        orders.insert(first.order);
    }
    EXPECT_EQ(orders.size(), 10U);
}

TEST(VirtualClock, OperationsOverlapInItsTimeAsManyAsThereAreEngines) {
    for (const int engines : {1, 3}) {
        const simulated told(sim(2), {.engines = engines, .virtual_clock = true});
        const stopwatch watch;
        int inside = 0;
        int overlaps = 0;
        const std::vector<stream> streams = streams_of(sim(2), 6);
        for (const stream& s : streams) {
            for (int k = 0; k < 4; ++k) {
                enqueue(s, {}, [&] {
                    overlaps += ++inside == 1 ? 0 : 1;
                    --inside;
                });
            }
        }
        sim(2).synchronize();
        EXPECT_EQ(watch.runs.size(), 24U);
        EXPECT_EQ(watch.most_at_once(), engines);
        EXPECT_EQ(overlaps, 0) << "the code itself runs one at a time";
    }
}

TEST(VirtualClock, ItsCostsAreTheProgramsToSay) {
    const simulated told(sim(2), {.virtual_clock = true, .cost = [](const testing::sim_operation& what) {
                                      return what.kind == runtime::work_kind::copy ? 1s : 10ms;
                                  }});
    const auto begin = sim(2).state(detail::key).driver().now();
    const stream a(sim(2));
    const stream b(sim(2));
    int order = 0;
    enqueue(
        a, {}, [&] { order = order * 10 + 1; }, {}, runtime::work_kind::copy);
    for (int i = 0; i < 3; ++i) {
        enqueue(b, {}, [&] { order = order * 10 + 2; });
    }
    a.synchronize();
    EXPECT_EQ(order, 2221) << "three short ones end before the long one";
    EXPECT_EQ(sim(2).state(detail::key).driver().now() - begin, 1s);
}

TEST(VirtualClock, AWaitForWhatTheHostOrAnotherDeviceDoesSleepsAndGoesOnDriving) {
    const time_limit limit(enough, "a wait for two devices");
    const simulated told(sim(2), {.virtual_clock = true});
    const stream far(sim(2));
    const stream near;
    gate hold;
    int order = 0;
    hold.hold(near);
    const completion first = enqueue(near, {}, [&] { order = order * 10 + 1; });
    const completion second = enqueue(far, {}, [&] { order = order * 10 + 2; }, {first});
    const completion third = enqueue(near, {}, [&] { order = order * 10 + 3; }, {second});
    std::thread opens([&] { hold.open(); });
    enqueue(far, {}, [&] { order = order * 10 + 4; }, {third}).synchronize();
    opens.join();
    EXPECT_EQ(order, 1234);
}

TEST(VirtualClock, SeveralThreadsWaitAndOneDrives) {
    const time_limit limit(enough, "one of four threads that wait");
    const simulated told(sim(2), {.virtual_clock = true});
    std::vector<std::thread> threads;
    std::atomic<int> inside{0};
    std::atomic<int> overlaps{0};
    std::atomic<int> ran{0};
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&] {
            const stream s(sim(2));
            for (int round = 0; round < 200; ++round) {
                enqueue(s, {}, [&] {
                    overlaps += ++inside == 1 ? 0 : 1;
                    ++ran;
                    --inside;
                });
                s.synchronize();
            }
        });
    }
    for (std::thread& one : threads) {
        one.join();
    }
    EXPECT_EQ(ran, 800);
    EXPECT_EQ(overlaps, 0);
}

TEST(VirtualClock, AHostTaskMayWaitForOtherStreams) {
    const time_limit limit(enough, "a host task that waits");
    const simulated told(sim(2), {.virtual_clock = true});
    const stream s(sim(2));
    const stream other(sim(2));
    int order = 0;
    enqueue(
        s, {},
        [&] {
            order = order * 10 + 1;
            enqueue(other, {}, [&] { order = order * 10 + 2; }).synchronize();
            order = order * 10 + 3;
        },
        {}, runtime::work_kind::host_task);
    enqueue(s, {}, [&] { order = order * 10 + 4; });
    s.synchronize();
    EXPECT_EQ(order, 1234);
}

TEST(VirtualClock, AfterItTheDeviceRunsByItselfAgain) {
    const time_limit limit(enough, "a device that is to run by itself");
    const stream s(sim(2));
    std::atomic<int> before{0};
    {
        const simulated told(sim(2), {.virtual_clock = true});
        enqueue(s, {}, [&] { ++before; });
    }
    std::atomic<bool> ran{false};
    std::thread::id ran_on;
    int seen = 0;
    enqueue(s, {}, [&] {
        seen = before;
        ran_on = std::this_thread::get_id();
        ran = true;
        ran.notify_all();
    });
    ran.wait(false);  // this thread neither asks nor drives
    EXPECT_NE(ran_on, std::this_thread::get_id());
    EXPECT_EQ(seen, 1) << "what was enqueued under the virtual clock ran once, and before";
    s.synchronize();
    EXPECT_EQ(before, 1);
}

}  // namespace
}  // namespace weir
