#pragma once

#include <atomic>
#include <cstdint>

namespace weir::runtime {

/// Decides whether a forked child may use Weir; threads do not survive a fork. If the process was at rest at the fork (no work
/// unfinished, no thread inside Weir), the child continues with what it has: memory is copied on write, and threads start again
/// at the first use. Otherwise no thread in the child would run the parent's streams, and locks may be held by threads that
/// are gone. So Weir reports that at once instead of hanging (rule L3): enqueueing, waiting and allocating throw state_error.
/// `exec` ends that state; a fork before the first use avoids it.
///
///     prepare: keeps threads out (backend::fork_gate), checks for threads inside and unfinished work; does not wait for work
///     parent:  lets threads in again
///     child:   forgets the threads (backend::fork_part), or refuses from then on
///
/// Devices other than the CPU stay with the parent in any case (device_state::expect_usable).
class fork_guard {
public:
    /// Throws state_error in a child that cannot use Weir. In a child that can, the first call starts the threads, and throws
    /// device_error or out_of_memory if they cannot be started.
    static void expect_usable() {
        if (state_.load(std::memory_order_relaxed) != state::usable) {
            resume_or_refuse();
        }
    }
    /// Whether this is a child that cannot use Weir. Functions that cannot throw must then leave things as they are.
    [[nodiscard]] static bool is_refused() noexcept { return state_.load(std::memory_order_relaxed) == state::refused; }
    /// Registers the fork handlers. Idempotent; must be called before anything else of Weir can be in use.
    static void arm() noexcept;

private:
    enum class state : std::uint8_t { usable, to_resume, refused };

    static void resume_or_refuse();
    static void prepare() noexcept;
    static void parent() noexcept;
    static void child() noexcept;

    /// Changes in a child that has one thread only, and once more when the child resumes.
    static inline constinit std::atomic<state> state_{state::usable};
};

}  // namespace weir::runtime
