#pragma once

#include <atomic>
#include <cstdint>

#include "weir/detail/fork_section.hpp"

namespace weir::backend {

/// A lock for short critical sections (some 100 ns) on the path of every operation, usually without contention: taking it is one
/// atomic read-modify-write, releasing it is a plain store.
///
///     releasing thread:  stores that it is free; loads the number of sleepers     (no fence: the sleeper pays for both)
///     sleeping thread:   raises the number of sleepers; membarrier(2); tries once more; sleeps while it is held
///
/// Either the sleeping thread finds the lock free, or the releasing thread sees the sleeper and wakes it. Where the system has no
/// membarrier, sleeping threads try again each millisecond. Not fair.
class raw_hot_mutex {
public:
    constexpr raw_hot_mutex() noexcept = default;
    raw_hot_mutex(const raw_hot_mutex&) = delete;
    raw_hot_mutex& operator=(const raw_hot_mutex&) = delete;
    ~raw_hot_mutex() = default;

    [[nodiscard]] bool try_lock() noexcept {
        // Load first: exchanging a held lock would take the cache line from the thread that holds it.
        return state_.load(std::memory_order_relaxed) == 0 && state_.exchange(1, std::memory_order_acquire) == 0;
    }
    [[gnu::always_inline]] void lock() noexcept {
        if (state_.exchange(1, std::memory_order_acquire) != 0) {
            lock_slowly();
        }
    }
    [[gnu::always_inline]] void unlock() noexcept {
        if (let_go()) {
            wake_one();
        }
    }
    /// @{
    /// `unlock` in two steps. `let_go` returns whether a thread sleeps; the caller then calls `wake_one`.
    [[nodiscard, gnu::always_inline]] bool let_go() noexcept {
        state_.store(0, std::memory_order_release);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        return sleepers_.load(std::memory_order_relaxed) != 0;
    }
    [[gnu::cold]] void wake_one() noexcept;
    /// @}

private:
    [[gnu::cold]] void lock_slowly() noexcept;

    std::atomic<std::uint32_t> state_{0};  ///< 1: held
    std::atomic<std::uint32_t> sleepers_{0};
};

/// The same for general use. As with all locks of Weir, a thread that holds it, or waits for it, is in a fork_section.
class hot_mutex {
public:
    constexpr hot_mutex() noexcept = default;

    void lock() noexcept {
        detail::fork_section::enter();
        mutex_.lock();
    }
    [[nodiscard]] bool try_lock() noexcept {
        detail::fork_section::enter();
        if (mutex_.try_lock()) {
            return true;
        }
        detail::fork_section::leave();
        return false;
    }
    void unlock() noexcept {
        mutex_.unlock();
        detail::fork_section::leave();
    }

    /// The same lock for a caller that is in a fork_section throughout.
    [[nodiscard]] raw_hot_mutex& within_section() noexcept { return mutex_; }

private:
    raw_hot_mutex mutex_;
};

}  // namespace weir::backend
