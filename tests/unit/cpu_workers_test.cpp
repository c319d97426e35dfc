// The CPU's worker threads: work that is scheduled runs, whatever state the other threads are in.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "backend/cpu/workers.hpp"
#include "backend/spin.hpp"

namespace weir::backend::cpu {
namespace {

bool comes_true(const std::atomic<bool>& flag, std::chrono::seconds within) {
    const auto end = std::chrono::steady_clock::now() + within;
    while (!flag && std::chrono::steady_clock::now() < end) {
        std::this_thread::yield();
    }
    return flag;
}

class other_work final : public runnable {
public:
    std::atomic<bool> has_run{false};

private:
    void run() noexcept override { has_run = true; }
    bool has_work() noexcept override { return false; }
};

/// While its worker searches for more of its own work, another thread schedules other work and relies on the searching worker. Then that
/// worker gets work of its own after all.
class busy_again final : public runnable {
public:
    other_work other;
    std::atomic<bool> has_lingered{false};
    std::atomic<bool> others_ran{false};
    std::atomic<bool> is_over{false};

private:
    void run() noexcept override {
        while (!was_asked_) {  // while another worker searches, this one does not
            has_lingered = workers::instance().linger(*this, {});
            std::this_thread::yield();
        }
        workers::instance().leave_to_others();
        others_ran = comes_true(other.has_run, std::chrono::seconds(10));
        is_over = true;
    }
    bool has_work() noexcept override {
        if (!was_asked_) {
            was_asked_ = true;
            std::thread([this] { workers::instance().schedule(other); }).join();
        }
        return false;
    }

    bool was_asked_ = false;
};

TEST(Workers, S1WhatIsScheduledWhileOneLooksIsRunIfThatOneGoesOnWithItsOwn) {
    workers& all = workers::instance();
    if (all.count() < 2 || !worth_spinning()) {
        GTEST_SKIP() << "there is one worker only, or one processor, where none looks: see WEIR_CPU_THREADS";
    }
    all.start();
    for (int round = 0; round < 200; ++round) {
        busy_again one;
        all.schedule(one);
        ASSERT_TRUE(comes_true(one.is_over, std::chrono::seconds(60)));
        ASSERT_FALSE(one.has_lingered) << "it had no work of its own";
        ASSERT_TRUE(one.others_ran) << "in round " << round;
    }
}

}  // namespace
}  // namespace weir::backend::cpu
