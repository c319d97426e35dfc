// What a fork must not cut through. Layer: base.
#pragma once

#include "weir/export.hpp"

namespace weir::detail {

/// A stretch of code in which Weir's own state is not as others may find it: a lock is held, a list is in a thread's hands, a
/// thread of Weir's is at work. Whoever forks while another thread is in such a stretch gets a child that cannot use Weir,
/// and is told so (rule L3). Nests; costs a few instructions and no memory traffic.
///
/// Locks see to it themselves (detail::mutex). What takes no lock, and leaves something to be done by itself alone, says so.
class fork_section {
public:
    /// Waits while another thread forks, unless this thread is in a section already.
    fork_section() noexcept { enter(); }
    ~fork_section() { leave(); }
    fork_section(const fork_section&) = delete;
    fork_section& operator=(const fork_section&) = delete;

    WEIR_EXPORT static void enter() noexcept;
    WEIR_EXPORT static void leave() noexcept;

    /// While it lives, the calling thread, one of Weir's that sleeps, is in no section. It must not outlive `try_return`.
    class rest {
    public:
        WEIR_EXPORT rest() noexcept;
        ~rest() = default;
        rest(const rest&) = delete;
        rest& operator=(const rest&) = delete;

        /// Back into the sections; false while a thread forks.
        [[nodiscard]] WEIR_EXPORT bool try_return() const noexcept;
        /// Waits until no thread forks. Call with no lock held.
        WEIR_EXPORT static void wait_for_fork() noexcept;

    private:
        unsigned depth_;
    };
};

}  // namespace weir::detail
