// One action on a thread of its own, for tests of two threads.
#pragma once

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "support/effort.hpp"

namespace weir::test {

/// Runs `action` once on a thread of its own, which the destructor joins.
class beside {
public:
    template <class Action>
    explicit beside(Action&& action)
        : thread_([this, does = std::forward<Action>(action)]() mutable {
              id_.store(static_cast<int>(::syscall(SYS_gettid)), std::memory_order_release);
              does();
              is_over_.store(true, std::memory_order_release);
          }) {}
    ~beside() { join(); }
    beside(const beside&) = delete;
    beside& operator=(const beside&) = delete;

    [[nodiscard]] bool is_over() const noexcept { return is_over_.load(std::memory_order_acquire); }

    void join() {
        if (thread_.joinable()) {
            thread_.join();
        }
    }

    /// Waits until `condition()` is true or the action has returned. Returns whether the condition came first.
    template <class Condition>
    [[nodiscard]] bool comes_to(Condition&& condition) const {
        while (!condition()) {
            if (is_over()) {
                return condition();
            }
            std::this_thread::yield();
        }
        return true;
    }

    /// Waits until the action has returned, or for `most` at longest. Returns whether the action has returned.
    [[nodiscard]] bool returns_within(std::chrono::seconds most) const {
        const auto end = std::chrono::steady_clock::now() + most;
        while (!is_over() && std::chrono::steady_clock::now() < end) {
            std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
        return is_over();
    }

    /// Waits until the action has returned or the thread waits: it sleeps and stays asleep, or it has run for many times as long as
    /// the action takes. Returns whether it waits. The machine's load never makes a test wrong that expects a wait: an action that
    /// has to wait cannot have returned.
    [[nodiscard]] bool waits() const {
        constexpr auto far_too_long = std::chrono::milliseconds(sanitized ? 200 : 20);
        constexpr auto stays_asleep = std::chrono::milliseconds(sanitized ? 50 : 5);
        activity last = look();
        const auto first_used = last.used;
        auto since = std::chrono::steady_clock::now();
        while (!is_over()) {
            const activity now = look();
            if (now.used - first_used > far_too_long) {
                return !is_over();
            }
            if (!now.is_asleep || now.used != last.used || now.sleeps != last.sleeps) {
                last = now;
                since = std::chrono::steady_clock::now();
            } else if (std::chrono::steady_clock::now() - since > stays_asleep) {
                return !is_over();
            }
            std::this_thread::yield();
        }
        return false;
    }

private:
    /// The system's data on the thread.
    struct activity {
        bool is_asleep = false;
        std::chrono::nanoseconds used{0};  ///< of a processor
        std::uint64_t sleeps = 0;
    };

    [[nodiscard]] activity look() const {
        const int id = id_.load(std::memory_order_acquire);
        if (id == 0) {
            return {};
        }
        activity found;
        clockid_t clock{};
        timespec used{};
        if (::pthread_getcpuclockid(handle_, &clock) == 0 && ::clock_gettime(clock, &used) == 0) {
            found.used = std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
        }
        std::ifstream status("/proc/self/task/" + std::to_string(id) + "/status");
        for (std::string line; std::getline(status, line);) {
            std::istringstream words(line);
            std::string name;
            words >> name;
            if (name == "State:") {
                std::string state;
                words >> state;
                found.is_asleep = state == "S";
            } else if (name == "voluntary_ctxt_switches:") {
                words >> found.sleeps;
            }
        }
        return found;
    }

    std::atomic<int> id_{0};
    std::atomic<bool> is_over_{false};
    std::thread thread_;  // declared last: it uses the members above
    pthread_t handle_ = thread_.native_handle();
};

}  // namespace weir::test
