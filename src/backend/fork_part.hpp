#pragma once

#include <atomic>
#include <cstddef>
#include <span>

namespace weir::backend {

/// What a component that has threads, or work under way, does about forks. Made once, static, and never destroyed; so that
/// the order of calls does not matter, none relies on another.
class fork_part {
public:
    fork_part(const fork_part&) = delete;
    fork_part& operator=(const fork_part&) = delete;

    enum class finding : unsigned char { quiet, busy, unknown };
    /// Before a fork, in the thread that forks: whether work is under way that a child would wait for in vain. Takes no lock
    /// that is not free, and waits for nothing; `unknown` if a lock was not free. Says in `who`, as text, whose work it is.
    [[nodiscard]] virtual finding look([[maybe_unused]] std::span<char> who) noexcept { return finding::quiet; }

    /// In a child that may use Weir, while it has one thread: forgets the threads that it does not have.
    virtual void begin_child() noexcept {}
    /// Before the first use in that child: what is needed for work that goes on without further calls. May throw what starting
    /// threads throws; is called again then.
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
