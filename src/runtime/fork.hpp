#pragma once

#include <atomic>
#include <cstdint>

namespace weir::runtime {

/// Threads do not survive a fork. The child of a process that was at rest then (no work unfinished, no thread inside Weir) goes
/// on with what it has: memory is copied on write, and threads start again with the first use. Otherwise nobody there would
/// run the streams that the parent had, and locks may be held by threads that are gone; so Weir says so at once instead of
/// hanging (rule L3): enqueueing, waiting and allocating are a state_error. `exec` ends that, as does forking before the
/// first use.
///
///     prepare: keeps threads out (backend::fork_gate), looks who is inside and what is unfinished, and waits for no work
///     parent:  lets them in again
///     child:   forgets the threads (backend::fork_part), or refuses from then on
///
/// Devices other than the CPU stay with the parent in any case (device_state::expect_usable).
class fork_guard {
public:
    /// Throws state_error in a child that cannot use Weir. In one that can, the first call starts the threads, and throws
    /// device_error or out_of_memory if there are none to be had.
    static void expect_usable() {
        if (state_.load(std::memory_order_relaxed) != state::usable) {
            resume_or_refuse();
        }
    }
    /// Whether this is a child that cannot: what cannot throw must leave things as they are.
    [[nodiscard]] static bool is_refused() noexcept { return state_.load(std::memory_order_relaxed) == state::refused; }
    /// From now on forks are seen. Idempotent; called before anything else of Weir can be in use.
    static void arm() noexcept;

private:
    enum class state : std::uint8_t { usable, to_resume, refused };

    static void resume_or_refuse();
    static void prepare() noexcept;
    static void parent() noexcept;
    static void child() noexcept;

    /// Changes in a child that has one thread, and once more when it resumes.
    static inline constinit std::atomic<state> state_{state::usable};
};

}  // namespace weir::runtime
