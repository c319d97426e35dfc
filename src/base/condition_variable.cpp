// The condition variable of Weir, on futex(2).
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <mutex>

#include "weir/detail/fork_section.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::detail {

namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t), "futex(2) takes the number itself");

/// A time of CLOCK_MONOTONIC, which is the steady clock. The system refuses times before 0.
std::timespec system_time(std::chrono::steady_clock::time_point at) noexcept {
    const auto since_start = std::max(at.time_since_epoch(), std::chrono::steady_clock::duration(0));
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since_start);
    const std::chrono::nanoseconds rest = since_start - seconds;
    return {seconds.count(), rest.count()};
}

/// Sleeps while `word` is `value`, until `end` at most; without a limit if that is null. May return without a reason. False: it is `end`.
bool sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value, const std::timespec* end) noexcept {
    // Not FUTEX_WAIT, which takes a time that is relative to now.
    return ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, value, end, nullptr, FUTEX_BITSET_MATCH_ANY) == 0 ||
           errno != ETIMEDOUT;
}

}  // namespace

void condition_variable::wake(int most) noexcept {
    // Pairs with the load in `wait_once`: a thread that has read the old value and does not sleep yet will not fall asleep.
    sequence_.fetch_add(1, std::memory_order_seq_cst);
    ::syscall(SYS_futex, &sequence_, FUTEX_WAKE_PRIVATE, most, nullptr, nullptr, 0);
}

bool condition_variable::wait_once(std::mutex& held, const steady_time* end) noexcept {
    // Pairs with the load in `notify`. Both steps come before the mutex is unlocked: a thread that then locks it, and changes what this
    // thread waits for, sees the increment, and changes sequence_ after this thread has read it.
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t seen = sequence_.load(std::memory_order_seq_cst);
    held.unlock();
    const std::timespec limit = end != nullptr ? system_time(*end) : std::timespec{};
    const bool in_time = sleep_while(sequence_, seen, end != nullptr ? &limit : nullptr);
    // Before the mutex is locked: a thread that holds it meanwhile need not wake this one. Pairs with nothing: a notifying thread that
    // still reads the old number calls the system in vain.
    waiters_.fetch_sub(1, std::memory_order_relaxed);
    held.lock();
    return in_time;
}

bool condition_variable::sleep_once(std::mutex& held, const steady_time* end) noexcept {
    const fork_section::rest resting;
    const bool in_time = wait_once(held, end);
    while (!resting.try_return()) {
        held.unlock();  // other threads may need the lock to leave their sections
        fork_section::rest::wait_for_fork();
        held.lock();
    }
    return in_time;
}

}  // namespace weir::detail
