// The locks of Weir, which let a fork find out whether one is held. Layer: base.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <mutex>
#include <shared_mutex>

#include "weir/detail/fork_section.hpp"
#include "weir/export.hpp"

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

/// A condition variable for such a mutex. `wait` stays in the section: it is for threads of the program, of which a fork cannot know
/// what they wait for. `sleep` leaves the section: it is for threads of Weir's that have nothing to do. Calls without `over` may return
/// without a reason.
///
/// Not std::condition_variable, which may lose a notification with the GNU C library before 2.41 (its bug 25847). This one uses
/// futex(2):
///
///     waiting thread:    under the mutex: increments waiters_, reads sequence_; unlocks; sleeps while sequence_ has this value
///     notifying thread:  reads waiters_; if it is not 0: changes sequence_; wakes a thread that sleeps
///
/// What the waiting thread waits for is changed under the mutex, so the mutex orders the two threads. Either the waiting thread locks it
/// after the change, and finds the change. Or it has unlocked it before the change: then the notifying thread reads the incremented
/// waiters_ and changes the value of sequence_ that the waiting thread read. The system compares and begins the sleep in one step, so
/// the waiting thread does not fall asleep, or is asleep when it is woken. A thread may notify after it has unlocked the mutex.
///
/// The system wakes threads of one priority in the order in which they fell asleep. Threads of different priorities that wait for
/// different things need `notify_all`.
///
/// May be destroyed when each waiting thread has locked the mutex again. So if the waiting thread owns the object, other threads notify
/// under the mutex. In the child of a fork, the object may be constructed anew without being destroyed.
class condition_variable {
public:
    constexpr condition_variable() noexcept = default;
    condition_variable(const condition_variable&) = delete;
    condition_variable& operator=(const condition_variable&) = delete;
    ~condition_variable() = default;

    void notify_one() noexcept { notify(1); }
    void notify_all() noexcept { notify(std::numeric_limits<int>::max()); }

    void wait(std::unique_lock<mutex>& held) noexcept { wait_once(held.mutex()->mutex_, nullptr); }
    template <class Over>
    void wait(std::unique_lock<mutex>& held, Over over) {
        while (!over()) {
            wait(held);
        }
    }
    /// The same with a time limit; returns what `over` returns at its end.
    template <class Rep, class Period, class Over>
    bool wait_for(std::unique_lock<mutex>& held, const std::chrono::duration<Rep, Period>& time, Over over) {
        const steady_time end = end_of(time);
        while (!over()) {
            if (!wait_once(held.mutex()->mutex_, &end)) {
                return over();
            }
        }
        return true;
    }

    void sleep(std::unique_lock<mutex>& held) noexcept { sleep_once(held.mutex()->mutex_, nullptr); }
    template <class Over>
    void sleep(std::unique_lock<mutex>& held, Over over) {
        while (!over()) {
            sleep(held);
        }
    }
    /// The same with a time limit; returns what `over` returns at its end.
    template <class Rep, class Period, class Over>
    bool sleep_for(std::unique_lock<mutex>& held, const std::chrono::duration<Rep, Period>& time, Over over) {
        const steady_time end = end_of(time);
        while (!over()) {
            if (!sleep_once(held.mutex()->mutex_, &end)) {
                return over();
            }
        }
        return true;
    }

private:
    using steady_time = std::chrono::steady_clock::time_point;

    template <class Rep, class Period>
    [[nodiscard]] static steady_time end_of(const std::chrono::duration<Rep, Period>& time) {
        return std::chrono::steady_clock::now() + std::chrono::ceil<steady_time::duration>(time);
    }

    void notify(int most) noexcept {
        // Pairs with the increment in `wait_once`. Without waiting threads, no memory is written and the system is not called.
        if (waiters_.load(std::memory_order_seq_cst) != 0) {
            wake(most);
        }
    }
    WEIR_EXPORT void wake(int most) noexcept;
    /// Waits until a notification or `end`; without a time limit if that is null. False: it is `end`.
    WEIR_EXPORT bool wait_once(std::mutex& held, const steady_time* end) noexcept;
    /// The same outside the fork section.
    WEIR_EXPORT bool sleep_once(std::mutex& held, const steady_time* end) noexcept;

    /// Changed in `wake`, read in `wait_once`. A thread would miss a notification only if 2^32 of them came between its read and its sleep.
    std::atomic<std::uint32_t> sequence_{0};
    /// Threads that sleep or are about to. Incremented in `wait_once`, read in `notify`.
    std::atomic<std::uint32_t> waiters_{0};
};

}  // namespace weir::detail
