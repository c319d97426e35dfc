#pragma once

#include <atomic>

namespace weir::runtime {

/// Threads do not survive a fork: in the child nobody runs the streams that the parent had, and locks may be held by
/// threads that are gone. So Weir says so at once instead of hanging (rule L3): in the child of a process that had
/// used Weir, enqueueing, waiting and allocating are a state_error. `exec` ends that, as does forking before the first use.
class fork_guard {
public:
    /// Throws state_error in such a child.
    static void expect_not_forked() {
        if (forked()) {
            refuse();
        }
    }
    /// Whether this is such a child: what cannot throw must leave things as they are.
    [[nodiscard]] static bool forked() noexcept { return forked_.load(std::memory_order_relaxed); }
    /// From the first use on. Idempotent.
    static void arm();

private:
    [[noreturn]] static void refuse();
    static inline std::atomic<bool> forked_{false};  ///< set once, in the child, while it has one thread
};

}  // namespace weir::runtime
