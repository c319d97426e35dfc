// A simulated accelerator's streams: real asynchrony, limited engines, disorder from a seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "support/effort.hpp"
#include "support/time_limit.hpp"
#include "support/tracked.hpp"
#include "weir/error.hpp"
#include "weir/testing.hpp"

namespace weir {
namespace {

using test::enqueue;
using test::time_limit;
using testing::gate;
using testing::simulated;

/// A time limit in seconds for a test that would hang if it failed.
constexpr unsigned enough = test::sanitized ? 120 : 30;

/// A door that threads open and pass: for operations that wait for each other.
class door {
public:
    void open() noexcept {
        is_open_ = true;
        is_open_.notify_all();
    }
    void pass() const noexcept { is_open_.wait(false); }

private:
    std::atomic<bool> is_open_{false};
};

TEST(SimStream, OperationsOfTwoStreamsOverlapBesideTheHost) {
    const time_limit limit(enough, "an operation that meets another one");
    const stream a(sim(0));
    const stream b(sim(0));
    door first;
    door second;
    std::atomic<int> inside{0};
    int seen_by_a = 0;
    int seen_by_b = 0;
    // Neither ends without the other: they only pass if they run at once.
    enqueue(a, {}, [&] {
        ++inside;
        first.open();
        second.pass();
        seen_by_a = inside;
    });
    enqueue(b, {}, [&] {
        first.pass();
        seen_by_b = ++inside;
        second.open();
    });
    a.synchronize();
    b.synchronize();
    EXPECT_EQ(seen_by_a, 2);
    EXPECT_EQ(seen_by_b, 2);
}

TEST(SimStream, AtMostAsManyOperationsRunAtOnceAsThereAreEngines) {
    const time_limit limit(enough, "an operation that meets two others");
    const simulated few(sim(0), {.engines = 3, .copy_engines = 2});
    std::atomic<int> running{0};
    std::atomic<int> most{0};
    std::atomic<int> copying{0};
    std::atomic<int> most_copying{0};
    const auto count = [](std::atomic<int>& now, std::atomic<int>& peak) {
        const int mine = ++now;
        for (int seen = peak; seen < mine && !peak.compare_exchange_weak(seen, mine);) {
        }
        std::this_thread::yield();
        --now;
    };
    std::vector<stream> streams;
    gate all;
    for (int i = 0; i < 20; ++i) {
        streams.emplace_back(sim(0));
        all.hold(streams.back());
    }
    // Three wait for each other: that many do run at once.
    std::atomic<int> met{0};
    for (int i = 0; i < 3; ++i) {
        enqueue(streams[static_cast<std::size_t>(i)], {}, [&] {
            ++met;
            while (met < 3) {
                std::this_thread::yield();
            }
        });
    }
    for (int round = 0; round < 20; ++round) {
        for (const stream& one : streams) {
            enqueue(one, {}, [&] { count(running, most); });
            enqueue(
                one, {}, [&] { count(copying, most_copying); }, {}, runtime::work_kind::copy);
        }
    }
    all.open();
    for (const stream& one : streams) {
        one.synchronize();
    }
    EXPECT_EQ(met, 3);
    EXPECT_LE(most, 3);
    EXPECT_LE(most_copying, 2);
}

TEST(SimStream, CopiesRunWhileAllEnginesAreBusy) {
    const time_limit limit(enough, "a copy beside an engine that is busy");
    const simulated one_engine(sim(0), {.engines = 1});
    const stream busy(sim(0));
    const stream copies(sim(0));
    const stream other(sim(0));
    door begun;
    door copied;
    std::atomic<int> ran{0};
    int seen = 0;
    enqueue(busy, {}, [&] {
        begun.open();
        copied.pass();
        seen = ran;
    });
    begun.pass();
    enqueue(other, {}, [&] { ran += 10; });
    enqueue(
        copies, {},
        [&] {
            ran += 1;
            copied.open();
        },
        {}, runtime::work_kind::copy);
    busy.synchronize();
    other.synchronize();
    EXPECT_EQ(seen, 1) << "the copy ran, and what needs the engine did not";
    EXPECT_EQ(ran, 11);
}

TEST(SimStream, ABlockedHostTaskHoldsUpNothingButItsStream) {
    const time_limit limit(enough, "a stream beside blocked host tasks");
    const simulated one_engine(sim(0), {.engines = 1});
    door open;
    std::vector<stream> blocked;
    std::atomic<int> passed{0};
    std::atomic<int> behind{0};
    for (int i = 0; i < 8; ++i) {
        blocked.emplace_back(sim(0));
        enqueue(
            blocked.back(), {},
            [&] {
                open.pass();
                ++passed;
            },
            {}, runtime::work_kind::host_task);
        enqueue(blocked.back(), {}, [&] { behind += passed > 0 ? 1 : 0; });
    }
    const stream other(sim(0));
    int before = -1;
    enqueue(other, {}, [&] {
        before = passed + behind;
        open.open();
    });
    for (const stream& one : blocked) {
        one.synchronize();
    }
    EXPECT_EQ(before, 0) << "the other stream did not wait for any task";
    EXPECT_EQ(passed, 8);
    EXPECT_EQ(behind, 8) << "a task holds up its own stream";
}

TEST(SimStream, TenThousandStreamsRunAndTheirWaitsHoldNoThread) {
    const time_limit limit(10 * enough, "one of ten thousand streams");
    constexpr std::size_t count = 10000;
    constexpr std::size_t chain = 100;
    std::vector<stream> streams;
    std::vector<int> ran(count);  // one entry for each operation
    std::atomic<int> too_early{0};
    gate hold;
    streams.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        streams.emplace_back(sim(0));
        const bool first = i % chain == 0;
        if (first) {
            hold.hold(streams.back());
        } else {
            streams[i].wait(streams[i - 1]);
        }
        enqueue(streams.back(), {}, [&, i, first] {
            too_early += first || ran[i - 1] == 1 ? 0 : 1;
            ran[i] = 1;
        });
    }
    EXPECT_FALSE(streams.back().done());
    hold.open();
    sim(0).synchronize();
    EXPECT_EQ(std::count(ran.begin(), ran.end(), 1), static_cast<std::ptrdiff_t>(count));
    EXPECT_EQ(too_early, 0);
}

TEST(SimStream, StreamsOfSimAndCpuWaitForEachOther) {
    const stream near;
    const stream far(sim(0));
    test::tracked value;
    int x = 0;
    for (int round = 0; round < 1000; ++round) {
        enqueue(near, {value.writes()}, [&] { x += 1; });
        enqueue(far, {value.writes()}, [&] {
            x *= 3;
            x %= 1000;
        });
    }
    int expected = 0;
    for (int round = 0; round < 1000; ++round) {
        expected = (expected + 1) * 3 % 1000;
    }
    far.synchronize();
    EXPECT_EQ(x, expected);
}

/// The order in which one engine runs the operations of 16 streams that all wait for it.
std::vector<int> order_by(const testing::sim_settings& settings) {
    const simulated scope(sim(1), settings);
    std::vector<stream> streams;
    std::vector<int> order;
    door all_wait;
    std::atomic<int> copied{0};
    const stream busy(sim(1));
    enqueue(busy, {}, [&] { all_wait.pass(); });
    for (int i = 0; i < 16; ++i) {
        streams.emplace_back(sim(1));
        // Behind a copy, which needs another engine: once the copy is over, the stream is ready for the engine that is busy.
        enqueue(
            streams.back(), {}, [&] { ++copied; }, {}, runtime::work_kind::copy);
        for (int k = 0; k < 4; ++k) {
            enqueue(streams.back(), {}, [&order, i, k] { order.push_back(4 * i + k); });
        }
    }
    while (copied < 16) {
        std::this_thread::yield();
    }
    all_wait.open();
    sim(1).synchronize();
    return order;
}

TEST(SimStream, AdversarialDelaysChangeTheOrderOfStreamsButNotWithinThem) {
    const time_limit limit(enough, "a stream on a device with delays");
    std::set<std::vector<int>> seen;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
        const std::vector<int> order = order_by({.engines = 1, .seed = seed, .adversarial = true});
        ASSERT_EQ(order.size(), 64U) << "all run: none is held back for ever";
        seen.insert(order);
        for (int i = 0; i < 16; ++i) {
            std::vector<int> own;
            std::copy_if(order.begin(), order.end(), std::back_inserter(own), [i](int each) { return each / 4 == i; });
            EXPECT_EQ(own, (std::vector<int>{4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3}));
        }
        // Some stream was overtaken: without disorder, streams take turns.
        EXPECT_FALSE(std::is_sorted(order.begin(), order.end(), [](int l, int r) { return l % 4 < r % 4; }));
    }
    EXPECT_GT(seen.size(), 4U);
}

TEST(SimStream, SettingsChangeOnlyWhileTheDeviceIsIdle) {
    const stream s(sim(1));
    gate hold;
    hold.hold(s);
    enqueue(s, {}, [] {});
    EXPECT_THROW(static_cast<void>(simulated(sim(1), {})), state_error);
    hold.open();
    s.synchronize();
    EXPECT_NO_THROW(static_cast<void>(simulated(sim(1), {})));
    EXPECT_THROW(static_cast<void>(simulated(cpu(), {})), argument_error);
    EXPECT_THROW(static_cast<void>(simulated(sim(1), {.engines = 0})), argument_error);
}

}  // namespace
}  // namespace weir
