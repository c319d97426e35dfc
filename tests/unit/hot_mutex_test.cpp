#include "backend/hot_mutex.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "backend/process_barrier.hpp"

namespace weir::backend {
namespace {

TEST(HotMutex, IsHeldByOneAtATime) {
    constexpr int threads = 4;
    constexpr int rounds = 20000;
    hot_mutex mutex;
    long guarded = 0;  // no atomic: only the lock makes this right
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) {
        all.emplace_back([&] {
            for (int round = 0; round < rounds; ++round) {
                const std::lock_guard lock(mutex);
                guarded = guarded + 1;
            }
        });
    }
    for (std::thread& one : all) {
        one.join();
    }
    EXPECT_EQ(guarded, long{threads} * rounds);
}

TEST(HotMutex, TryLockSaysWhetherItIsHeld) {
    hot_mutex mutex;
    ASSERT_TRUE(mutex.try_lock());
    bool other = true;
    std::thread([&] { other = mutex.try_lock(); }).join();
    EXPECT_FALSE(other);
    mutex.unlock();
    EXPECT_TRUE(mutex.try_lock());
    mutex.unlock();
}

// Held for far longer than a thread spins for it, so that the thread sleeps.
TEST(HotMutex, ASleepingThreadIsWoken) {
    constexpr auto long_enough = std::chrono::milliseconds(2);
    constexpr auto too_long = std::chrono::seconds(5);
    constexpr int sleepers = 3;
    // In memory of its own, so that threads that are never woken can be left behind.
    struct shared {
        hot_mutex mutex;
        std::atomic<int> begun{0};
        std::atomic<int> done{0};
    };
    for (int round = 0; round < 20; ++round) {
        const auto all = std::make_shared<shared>();
        std::vector<std::thread> threads;
        all->mutex.lock();
        for (int i = 0; i < sleepers; ++i) {
            threads.emplace_back([all] {
                all->begun.fetch_add(1);
                const std::lock_guard lock(all->mutex);
                all->done.fetch_add(1);
            });
        }
        const auto start = std::chrono::steady_clock::now();
        while (all->begun.load() < sleepers || std::chrono::steady_clock::now() - start < long_enough) {
            std::this_thread::yield();
        }
        EXPECT_EQ(all->done.load(), 0);
        all->mutex.unlock();
        const auto let_go = std::chrono::steady_clock::now();
        while (all->done.load() < sleepers && std::chrono::steady_clock::now() - let_go < too_long) {
            std::this_thread::yield();
        }
        const bool are_awake = all->done.load() == sleepers;
        for (std::thread& one : threads) {
            are_awake ? one.join() : one.detach();
        }
        ASSERT_TRUE(are_awake) << all->done.load() << " of " << sleepers << " were woken";
    }
}

// Each thread releases the lock at once, while many threads fall asleep and are woken all the time.
TEST(HotMutex, NoThreadIsForgottenWhereAllSleepAndWake) {
    constexpr int threads = 6;
    constexpr int rounds = 300;
    hot_mutex mutex;
    long guarded = 0;
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) {
        all.emplace_back([&] {
            for (int round = 0; round < rounds; ++round) {
                const std::lock_guard lock(mutex);
                guarded = guarded + 1;
                const auto start = std::chrono::steady_clock::now();
                while (std::chrono::steady_clock::now() - start < std::chrono::microseconds(20)) {
                    std::this_thread::yield();
                }
            }
        });
    }
    for (std::thread& one : all) {
        one.join();
    }
    EXPECT_EQ(guarded, long{threads} * rounds);
}

TEST(ProcessBarrier, SaysTheSameEachTime) {
    const bool is_there = has_process_barrier();
    EXPECT_EQ(process_barrier(), is_there);
    EXPECT_EQ(has_process_barrier(), is_there);
}

}  // namespace
}  // namespace weir::backend
