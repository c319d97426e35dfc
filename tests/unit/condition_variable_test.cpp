// The condition variable of Weir's locks: no notification is lost.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "backend/fork_gate.hpp"
#include "support/time_limit.hpp"
#include "weir/detail/fork_section.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::detail {
namespace {

/// Far longer than a test takes on a busy machine.
constexpr unsigned too_long = 120;

template <class Condition>
bool comes_true(Condition&& condition, std::chrono::seconds within) {
    const auto end = std::chrono::steady_clock::now() + within;
    while (!condition() && std::chrono::steady_clock::now() < end) {
        std::this_thread::yield();
    }
    return condition();
}

/// Threads that wait until each has got something. In memory of its own, so that threads that are never woken can be left behind.
struct waiting_room {
    mutex guard;
    condition_variable changed;
    int waiting = 0;
    int there = 0;  ///< what threads can take
    std::atomic<int> taken{0};

    void take_one() {
        std::unique_lock lock(guard);
        ++waiting;
        changed.wait(lock, [&] { return there > 0; });
        --there;
        taken.fetch_add(1);
    }
    bool all_wait(int threads) {
        const std::lock_guard lock(guard);
        return waiting == threads;
    }
    void give(int more) {
        const std::lock_guard lock(guard);
        there += more;
    }
};

/// Lets `threads` threads wait, calls `notify`, and says how many of them end their wait.
template <class Notify>
int woken(int threads, Notify&& notify) {
    constexpr auto long_enough = std::chrono::seconds(10);
    const auto room = std::make_shared<waiting_room>();
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) {
        all.emplace_back([room] { room->take_one(); });
    }
    bool are_awake = comes_true([&] { return room->all_wait(threads); }, long_enough);
    if (are_awake) {
        notify(*room);
        are_awake = comes_true([&] { return room->taken.load() == threads; }, long_enough);
    }
    for (std::thread& one : all) {
        are_awake ? one.join() : one.detach();
    }
    return room->taken.load();
}

TEST(ConditionVariable, EachNotificationWakesOneThread) {
    for (const int threads : {1, 4}) {
        const int found = woken(threads, [&](waiting_room& room) {
            for (int i = 0; i < threads; ++i) {
                room.give(1);
                room.changed.notify_one();
            }
        });
        ASSERT_EQ(found, threads);
    }
}

TEST(ConditionVariable, ANotificationOfAllWakesAllThreads) {
    const int found = woken(4, [](waiting_room& room) {
        room.give(4);
        room.changed.notify_all();
    });
    EXPECT_EQ(found, 4);
}

TEST(ConditionVariable, ATimedWaitEndsAtItsTimeOrWhenWhatItWaitsForIsThere) {
    using std::chrono::steady_clock;
    constexpr auto short_time = std::chrono::milliseconds(20);
    const test::time_limit limit(too_long, "a timed wait");
    mutex guard;
    condition_variable changed;
    bool is_there = false;
    const auto found = [&] { return is_there; };
    const auto waits = [&](std::unique_lock<mutex>& lock, auto time) { return changed.wait_for(lock, time, found); };
    const auto sleeps = [&](std::unique_lock<mutex>& lock, auto time) { return changed.sleep_for(lock, time, found); };
    const auto try_both = [&](auto time) {
        std::unique_lock lock(guard);
        return std::pair(waits(lock, time), sleeps(lock, time));
    };

    const auto start = steady_clock::now();
    EXPECT_EQ(try_both(short_time), std::pair(false, false));
    EXPECT_GE(steady_clock::now() - start, 2 * short_time);
    EXPECT_EQ(try_both(-short_time), std::pair(false, false));
    EXPECT_EQ(try_both(-steady_clock::now().time_since_epoch() - std::chrono::hours(1)), std::pair(false, false))
        << "a time before the clock's first";

    std::thread other([&] {
        const std::lock_guard lock(guard);
        is_there = true;
        changed.notify_all();
    });
    EXPECT_EQ(try_both(std::chrono::hours(1)), std::pair(true, true));
    other.join();
    EXPECT_EQ(try_both(-short_time), std::pair(true, true));
}

// Each thread notifies right after it has unlocked the mutex, so often between the other one's unlock and its sleep.
TEST(ConditionVariable, NoNotificationBetweenTwoThreadsIsLost) {
    constexpr int rounds = 20000;
    const test::time_limit limit(too_long, "a thread that waits for its turn");
    mutex guard;
    std::array<condition_variable, 2> changed;
    int turn = 0;
    const auto play = [&](int self) {
        for (int round = 0; round < rounds; ++round) {
            {
                std::unique_lock lock(guard);
                changed[static_cast<std::size_t>(self)].wait(lock, [&] { return turn % 2 == self; });
                ++turn;
            }
            changed[static_cast<std::size_t>(1 - self)].notify_one();
        }
    };
    std::thread first([&] { play(0); });
    std::thread second([&] { play(1); });
    first.join();
    second.join();
    EXPECT_EQ(turn, 2 * rounds);
}

// As the threads of a device: nearly all of them sleep, and each notification is the only one for its task.
TEST(ConditionVariable, EachTaskIsTakenWhereManyThreadsSleep) {
    constexpr int sleepers = 8;
    constexpr int feeders = 2;
    constexpr int tasks = 10000;  // of each feeder
    struct task {
        bool is_taken = false;
        condition_variable taken;
    };
    const test::time_limit limit(too_long, "a task, or the thread that should take it,");
    mutex guard;  // guards all that follows
    condition_variable wake;
    std::vector<task*> ready;
    bool is_over = false;
    int taken = 0;

    std::vector<std::thread> pool;
    for (int i = 0; i < sleepers; ++i) {
        pool.emplace_back([&] {
            std::unique_lock lock(guard);
            for (;;) {
                wake.sleep(lock, [&] { return !ready.empty() || is_over; });
                if (ready.empty()) {
                    return;
                }
                task& one = *ready.back();
                ready.pop_back();
                ++taken;
                one.is_taken = true;
                one.taken.notify_one();  // under the lock: then the feeder may destroy it
            }
        });
    }
    std::vector<std::thread> feeding;
    for (int i = 0; i < feeders; ++i) {
        feeding.emplace_back([&] {
            for (int k = 0; k < tasks; ++k) {
                task one;
                {
                    const std::lock_guard lock(guard);
                    ready.push_back(&one);
                }
                wake.notify_one();
                std::unique_lock lock(guard);
                one.taken.wait(lock, [&] { return one.is_taken; });
            }
        });
    }
    for (std::thread& one : feeding) {
        one.join();
    }
    {
        const std::lock_guard lock(guard);
        is_over = true;
    }
    wake.notify_all();
    for (std::thread& one : pool) {
        one.join();
    }
    EXPECT_EQ(taken, feeders * tasks);
}

TEST(ConditionVariable, L3AThreadThatSleepsIsInNoForkSectionAndOneThatWaitsIs) {
    using backend::fork_gate;
    const test::time_limit limit(too_long, "a thread that sleeps or waits");
    for (const bool sleeps : {true, false}) {
        mutex guard;
        condition_variable changed;
        bool has_begun = false;
        bool is_over = false;
        bool is_inside_afterwards = false;
        std::thread other([&] {
            const fork_section awake;
            std::unique_lock lock(guard);
            has_begun = true;
            const auto over = [&] { return is_over; };
            sleeps ? changed.sleep(lock, over) : changed.wait(lock, over);
            is_inside_afterwards = fork_gate::is_inside();
        });
        const auto waits = [&] {
            const std::lock_guard lock(guard);
            return has_begun;
        };
        while (!waits()) {
            std::this_thread::yield();
        }
        fork_gate::close();
        if (sleeps) {
            while (fork_gate::others_inside()) {
                std::this_thread::yield();
            }
        } else {
            EXPECT_TRUE(fork_gate::others_inside());
        }
        {
            const std::lock_guard lock(guard);
            is_over = true;
        }
        changed.notify_one();  // a thread that sleeps returns when the gate is open
        fork_gate::open();
        other.join();
        EXPECT_TRUE(is_inside_afterwards);
    }
}

}  // namespace
}  // namespace weir::detail
