// Sections of code that a fork must not interrupt. Layer: base.
#pragma once

#include "weir/export.hpp"

namespace weir::detail {

/// A section of code in which Weir's state is inconsistent for a child process: a lock is held, a thread has taken a list, a thread of
/// Weir's is at work. If a thread forks while another one is in such a section, the child cannot use Weir, and throws state_error (rule
/// L3). Nests; costs a few instructions and no memory traffic.
///
/// Locks enter a section themselves (detail::mutex). Code that takes no lock, and has a step that no other thread would finish, must use
/// this class.
class fork_section {
public:
    /// Waits while another thread forks, unless this thread is already in a section.
    fork_section() noexcept { enter(); }
    ~fork_section() { leave(); }
    fork_section(const fork_section&) = delete;
    fork_section& operator=(const fork_section&) = delete;

    WEIR_EXPORT static void enter() noexcept;
    WEIR_EXPORT static void leave() noexcept;

    /// While it lives, the calling thread, one of Weir's that sleeps, is in no section. It must not be destroyed before `try_return`
    /// succeeds.
    class rest {
    public:
        WEIR_EXPORT rest() noexcept;
        ~rest() = default;
        rest(const rest&) = delete;
        rest& operator=(const rest&) = delete;

        /// Re-enters the sections; returns false while a thread forks.
        [[nodiscard]] WEIR_EXPORT bool try_return() const noexcept;
        /// Waits until no thread forks. Call with no lock held.
        WEIR_EXPORT static void wait_for_fork() noexcept;

    private:
        unsigned depth_;
    };
};

}  // namespace weir::detail
