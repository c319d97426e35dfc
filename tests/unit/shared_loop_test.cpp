// Loops that the calling thread shares with the CPU's workers.
#include "backend/shared_loop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/cpu/workers.hpp"

namespace weir::backend {
namespace {

TEST(SharedLoop, EachPartRunsOnceAndIsSeenByTheCaller) {
    for (const std::size_t parts : {0U, 1U, 2U, 7U, 1000U}) {
        std::vector<std::size_t> times(parts, 0);  // no atomics: no two threads have the same part
        share_loop(parts, [&](std::size_t part) { times[part] += part + 1; });
        for (std::size_t part = 0; part < parts; ++part) {
            ASSERT_EQ(times[part], part + 1);
        }
    }
}

TEST(SharedLoop, AWorkerTakesPartsWhileTheCallerIsAtOne) {
    if (loop_threads() < 2) {
        GTEST_SKIP() << "there is one worker only: see WEIR_CPU_THREADS";
    }
    std::atomic<std::size_t> begun{0};
    // Each part waits for the other one: this ends only if two threads take part in the loop.
    share_loop(2, [&](std::size_t /*part*/) {
        begun.fetch_add(1);
        while (begun.load() < 2) {
            std::this_thread::yield();
        }
    });
    EXPECT_EQ(begun.load(), 2U);
}

TEST(SharedLoop, AnExceptionIsThrownAtTheCallerAndPartsThatHadNotBegunAreLeftOut) {
    std::atomic<std::size_t> ran{0};
    const auto fails = [&] {
        share_loop(10'000, [&](std::size_t part) {
            ran.fetch_add(1);
            if (part == 0) {
                throw std::runtime_error("part 0");
            }
            std::this_thread::yield();
        });
    };
    try {
        fails();
        FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& why) {
        EXPECT_STREQ(why.what(), "part 0");
    }
    EXPECT_LE(ran.load(), 10'000U);
    std::atomic<std::size_t> later{0};
    share_loop(100, [&](std::size_t /*part*/) { later.fetch_add(1); });
    EXPECT_EQ(later.load(), 100U) << "the workers are as they were";
}

TEST(SharedLoop, AWorkerThatComesLateKeepsNoException) {
    const std::size_t workers = loop_threads();
    if (workers < 2) {
        GTEST_SKIP() << "there is one worker only: see WEIR_CPU_THREADS";
    }
    // Two loops take all workers, and the two threads that run them.
    std::atomic<std::size_t> begun{0};
    std::atomic<bool> is_over{false};
    const auto loop = [&] {
        share_loop(2 * workers + 2, [&](std::size_t /*part*/) {
            begun.fetch_add(1);
            while (!is_over.load()) {
                std::this_thread::yield();
            }
        });
    };
    std::thread first(loop);
    std::thread second(loop);
    while (begun.load() < workers + 2) {
        std::this_thread::yield();
    }
    struct holding : std::runtime_error {
        explicit holding(std::shared_ptr<int> what) : std::runtime_error("part"), held(std::move(what)) {}
        std::shared_ptr<int> held;
    };
    std::weak_ptr<int> seen;
    try {
        auto made = std::make_shared<int>(1);
        seen = made;
        share_loop(2, [&](std::size_t /*part*/) { throw holding(made); });
        ADD_FAILURE() << "nothing was thrown";
    } catch (const holding&) {
        EXPECT_FALSE(seen.expired());
    }
    EXPECT_TRUE(seen.expired()) << "a worker will look for parts later, and the loop's exception waits for it";
    is_over = true;
    first.join();
    second.join();
}

TEST(SharedLoop, NestedLoopsEnd) {
    std::vector<std::size_t> sums(32, 0);
    share_loop(sums.size(), [&](std::size_t outer) {
        std::vector<std::size_t> inner(64, 0);
        share_loop(inner.size(), [&](std::size_t part) { inner[part] = part * outer; });
        sums[outer] = std::accumulate(inner.begin(), inner.end(), std::size_t{0});
    });
    for (std::size_t outer = 0; outer < sums.size(); ++outer) {
        EXPECT_EQ(sums[outer], 2016 * outer);
    }
}

/// Keeps every worker busy until it is released.
class busy_worker final : public cpu::runnable {
public:
    explicit busy_worker(std::atomic<std::size_t>& at_work, const std::atomic<bool>& release)
        : at_work_(at_work), release_(release) {}

private:
    void run() noexcept override {
        at_work_.fetch_add(1);
        while (!release_.load()) {
            std::this_thread::yield();
        }
        at_work_.fetch_sub(1);
    }
    bool has_work() noexcept override { return false; }

    std::atomic<std::size_t>& at_work_;
    const std::atomic<bool>& release_;
};

TEST(SharedLoop, WhereAllWorkersAreBusyTheCallerDoesItAlone) {
    cpu::workers& all = cpu::workers::instance();
    all.start();
    std::atomic<std::size_t> at_work{0};
    std::atomic<bool> release{false};
    std::vector<std::unique_ptr<busy_worker>> busy;
    for (std::size_t i = 0; i < all.count(); ++i) {
        busy.push_back(std::make_unique<busy_worker>(at_work, release));
        all.schedule(*busy.back());
    }
    while (at_work.load() < all.count()) {
        std::this_thread::yield();
    }
    const std::thread::id caller = std::this_thread::get_id();
    std::vector<std::thread::id> by(100);
    share_loop(by.size(), [&](std::size_t part) { by[part] = std::this_thread::get_id(); });
    for (const std::thread::id& one : by) {
        EXPECT_EQ(one, caller);
    }
    release.store(true);
    while (at_work.load() > 0) {
        std::this_thread::yield();
    }
}

TEST(SharedLoop, ManyThreadsAtOnce) {
    std::vector<std::thread> threads;
    std::atomic<std::size_t> total{0};
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&] {
            for (int round = 0; round < 50; ++round) {
                share_loop(20, [&](std::size_t part) { total.fetch_add(part); });
            }
        });
    }
    for (std::thread& one : threads) {
        one.join();
    }
    EXPECT_EQ(total.load(), 8U * 50U * 190U);
}

}  // namespace
}  // namespace weir::backend
