// The locks of Weir, which let a fork find out whether one is held. Layer: base.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#include "weir/detail/fork_section.hpp"

namespace weir::detail {

/// std::mutex, whose holders and waiters are in a fork_section. So in a child that may use Weir, no such lock is held by a thread that
/// the child does not have.
class mutex {
public:
    constexpr mutex() noexcept = default;
    mutex(const mutex&) = delete;
    mutex& operator=(const mutex&) = delete;
    ~mutex() = default;

    void lock() {
        fork_section::enter();
        mutex_.lock();
    }
    [[nodiscard]] bool try_lock() {
        fork_section::enter();
        if (mutex_.try_lock()) {
            return true;
        }
        fork_section::leave();
        return false;
    }
    void unlock() {
        mutex_.unlock();
        fork_section::leave();
    }

    /// The same lock for a caller that is in a section all the time, where each nanosecond counts.
    [[nodiscard]] std::mutex& within_section() noexcept { return mutex_; }

private:
    friend class condition_variable;
    std::mutex mutex_;
};

/// The same for std::shared_mutex.
class shared_mutex {
public:
    shared_mutex() = default;
    shared_mutex(const shared_mutex&) = delete;
    shared_mutex& operator=(const shared_mutex&) = delete;
    ~shared_mutex() = default;

    void lock() {
        fork_section::enter();
        mutex_.lock();
    }
    void unlock() {
        mutex_.unlock();
        fork_section::leave();
    }
    void lock_shared() {
        fork_section::enter();
        mutex_.lock_shared();
    }
    void unlock_shared() {
        mutex_.unlock_shared();
        fork_section::leave();
    }

private:
    std::shared_mutex mutex_;
};

/// std::condition_variable for such a mutex. `wait` stays in the section: it is for threads of the program, of which a fork cannot know
/// what they wait for. `sleep` leaves the section: it is for threads of Weir's that have nothing to do.
class condition_variable {
public:
    void notify_one() noexcept { changed_.notify_one(); }
    void notify_all() noexcept { changed_.notify_all(); }

    void wait(std::unique_lock<mutex>& held) {
        const adopted raw(held);
        changed_.wait(raw.lock);
    }
    template <class Over>
    void wait(std::unique_lock<mutex>& held, Over over) {
        const adopted raw(held);
        changed_.wait(raw.lock, over);
    }
    template <class Rep, class Period, class Over>
    bool wait_for(std::unique_lock<mutex>& held, const std::chrono::duration<Rep, Period>& time, Over over) {
        const adopted raw(held);
        return changed_.wait_for(raw.lock, time, over);
    }

    /// Sleeps once; may return without a reason.
    void sleep(std::unique_lock<mutex>& held) {
        sleep_by(held, [&](std::unique_lock<std::mutex>& lock) { changed_.wait(lock); });
    }
    template <class Over>
    void sleep(std::unique_lock<mutex>& held, Over over) {
        while (!over()) {
            sleep(held);
        }
    }
    /// The same with a time limit; returns what `over` returns at its end.
    template <class Rep, class Period, class Over>
    bool sleep_for(std::unique_lock<mutex>& held, const std::chrono::duration<Rep, Period>& time, Over over) {
        const auto end = std::chrono::steady_clock::now() + time;
        bool in_time = true;
        while (!over() && in_time) {
            sleep_by(held, [&](std::unique_lock<std::mutex>& lock) {
                in_time = changed_.wait_until(lock, end) == std::cv_status::no_timeout;
            });
        }
        return over();
    }

private:
    struct adopted {
        mutable std::unique_lock<std::mutex> lock;
        explicit adopted(std::unique_lock<mutex>& held) : lock(held.mutex()->mutex_, std::adopt_lock) {}
        adopted(const adopted&) = delete;
        adopted& operator=(const adopted&) = delete;
        ~adopted() { lock.release(); }
    };

    template <class Wait>
    void sleep_by(std::unique_lock<mutex>& held, Wait&& wait) {
        const adopted raw(held);
        const fork_section::rest resting;
        wait(raw.lock);
        while (!resting.try_return()) {
            raw.lock.unlock();  // other threads may need the lock to leave their sections
            fork_section::rest::wait_for_fork();
            raw.lock.lock();
        }
    }

    std::condition_variable changed_;
};

}  // namespace weir::detail
