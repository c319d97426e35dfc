#pragma once

#include <atomic>
#include <cstdint>

#include "weir/detail/fork_section.hpp"

namespace weir::backend {

/// A lock for stretches of some 100 ns that every operation goes through, where nobody else is as a rule: taking it is one
/// atomic change, letting it go is a plain write.
///
///     who lets go:  writes that it is free; reads whether anybody sleeps        (no fence: the other side pays for both)
///     who sleeps:   says so; membarrier(2); tries once more; sleeps while it is held
///
/// Either the sleeper finds the lock free, or who lets go sees the sleeper and wakes it. Where the system has no membarrier,
/// sleepers look again each millisecond. Not fair.
class raw_hot_mutex {
public:
    constexpr raw_hot_mutex() noexcept = default;
    raw_hot_mutex(const raw_hot_mutex&) = delete;
    raw_hot_mutex& operator=(const raw_hot_mutex&) = delete;
    ~raw_hot_mutex() = default;

    [[nodiscard]] bool try_lock() noexcept {
        // The exchange of a lock that is held would take its line from who holds it.
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
    /// `unlock` in two steps: whether somebody sleeps, whom the caller wakes then.
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

/// The same as all locks of Weir are: who holds it, or waits for it, is in a fork_section.
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

    /// The same lock for who is in a section for all of the time anyway.
    [[nodiscard]] raw_hot_mutex& within_section() noexcept { return mutex_; }

private:
    raw_hot_mutex mutex_;
};

}  // namespace weir::backend
