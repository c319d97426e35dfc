#pragma once

#include <atomic>
#include <cstddef>
#include <span>

namespace weir::backend {

/// Handles forks for a component that has threads, or work in flight. Made once, static, and never destroyed. The order of calls
/// among parts is undefined, so that none may rely on another.
class fork_part {
public:
    fork_part(const fork_part&) = delete;
    fork_part& operator=(const fork_part&) = delete;

    enum class finding : unsigned char { quiet, busy, unknown };
    /// Before a fork, in the thread that forks: whether work is in flight that a child would wait for in vain. Takes no lock
    /// that is held, and waits for nothing; `unknown` if a lock was held by another thread. Writes into `owner`, as text, whose work it is.
    [[nodiscard]] virtual finding look([[maybe_unused]] std::span<char> owner) noexcept { return finding::quiet; }

    /// In a child that may use Weir, while it has one thread: drops the threads that the child does not have.
    virtual void begin_child() noexcept {}
    /// Before the first use in that child: starts what is needed for work that goes on without further calls. May throw what starting
    /// a thread throws; is called again then.
    virtual void resume() {}

    /// Calls `visit(fork_part&)` for each.
    template <class Visit>
    static void each(Visit&& visit) {
        for (fork_part* one = first_.load(std::memory_order_acquire); one != nullptr; one = one->next_) {
            visit(*one);
        }
    }

protected:
    fork_part() noexcept : next_(first_.load(std::memory_order_relaxed)) {
        while (!first_.compare_exchange_weak(next_, this, std::memory_order_release, std::memory_order_relaxed)) {
        }
    }
    ~fork_part() = default;

private:
    fork_part* next_;
    static inline constinit std::atomic<fork_part*> first_{nullptr};
};

}  // namespace weir::backend
