#pragma once

#include <atomic>
#include <cstddef>
#include <shared_mutex>

#include "observe/observer.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::observe {

/// The process's observers, at most `most` at a time.
class observers {
public:
    static constexpr std::size_t most = 8;

    /// When `add` has returned, the observer receives everything that happens, and has received all living streams. Throws state_error if
    /// there are too many observers, std::bad_alloc.
    static void add(observer& one);
    /// When `remove` has returned, the observer receives nothing more.
    static void remove(observer& one) noexcept;

    /// Makes `add` call `tell_living(observer)`, which reports the living streams to an observer. Called by the source of what observers
    /// receive, of which a process has one. `tell_living` may throw what `add` throws.
    static void set_source(void (*tell_living)(observer&)) noexcept {
        tell_living_.store(tell_living, std::memory_order_release);  // pairs with `add`
    }

    /// Whether there is any observer.
    [[nodiscard]] static bool any() noexcept { return count_.load(std::memory_order_relaxed) != 0; }
    [[nodiscard]] static bool want_safety() noexcept { return safety_.load(std::memory_order_relaxed) != 0; }
    [[nodiscard]] static bool want_times() noexcept { return times_.load(std::memory_order_relaxed) != 0; }

    /// Calls `tell(observer&)` for each observer.
    template <class Notify>
    static void notify(Notify&& notify) noexcept {
        if (any()) {
            const std::shared_lock lock(mutex_);
            for (observer* one : list_) {
                if (one != nullptr) {
                    notify(*one);
                }
            }
        }
    }

private:
    static void enter(observer& one);

    /// Guards list_; last in the lock order except for the observers' own locks.
    static inline detail::shared_mutex mutex_;
    static inline observer* list_[most] = {};
    static inline constinit std::atomic<void (*)(observer&)> tell_living_{nullptr};
    static inline std::atomic<int> count_{0};
    static inline std::atomic<int> safety_{0};
    static inline std::atomic<int> times_{0};
};

}  // namespace weir::observe
