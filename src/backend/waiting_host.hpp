#pragma once

#include <atomic>

namespace weir::backend {

/// States, while it lives, that a host thread waits for work. Without such a thread throughput counts, and a worker without work
/// lets enqueuing threads get ahead before it polls for more. With one, latency counts.
///
/// Only a hint, so nothing about it is ordered.
class waiting_host {
public:
    waiting_host() noexcept { count_.value.fetch_add(1, std::memory_order_relaxed); }
    ~waiting_host() { count_.value.fetch_sub(1, std::memory_order_relaxed); }
    waiting_host(const waiting_host&) = delete;
    waiting_host& operator=(const waiting_host&) = delete;

    /// Whether any host thread waits.
    [[nodiscard]] static bool any() noexcept { return count_.value.load(std::memory_order_relaxed) != 0; }

private:
    /// On a cache line of its own, since workers poll it.
    struct alignas(64) counter {
        std::atomic<int> value;
    };
    static inline counter count_;
};

}  // namespace weir::backend
