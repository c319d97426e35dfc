#pragma once

#include <atomic>

namespace weir::backend {

/// Says, while it lives, that a thread of the host waits for work. Where none does, what counts is how much gets done, and a
/// worker without work lets those who enqueue get ahead before it looks for more; where one does, how soon it gets done.
///
/// A hint alone, so nothing about it is ordered.
class waiting_host {
public:
    waiting_host() noexcept { count_.value.fetch_add(1, std::memory_order_relaxed); }
    ~waiting_host() { count_.value.fetch_sub(1, std::memory_order_relaxed); }
    waiting_host(const waiting_host&) = delete;
    waiting_host& operator=(const waiting_host&) = delete;

    /// Whether there is any.
    [[nodiscard]] static bool any() noexcept { return count_.value.load(std::memory_order_relaxed) != 0; }

private:
    /// On a cache line of its own, since workers ask again and again.
    struct alignas(64) counter {
        std::atomic<int> value;
    };
    static inline counter count_;
};

}  // namespace weir::backend
