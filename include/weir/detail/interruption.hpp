// Ends a wait of the host's from within the waiting thread. Layer: backend.
#pragma once

#include <chrono>
#include <exception>
#include <optional>

#include "weir/export.hpp"

namespace weir::detail {

/// While it lives, the waits of the calling thread call `asked` about twenty times a second, under no lock: an exception that it throws
/// ends the wait, and the call that waited throws that exception. For languages whose users interrupt a waiting program. Nests: the
/// innermost object counts.
///
/// A wait within a call that enqueues work cannot throw, because a half-enqueued operation would be lost. Such a wait only ends: the work
/// continues to wait without the calling thread, the thread waits for nothing more, and `expect_not_ended` throws at the end of the call.
class WEIR_EXPORT interruptible {
public:
    using question = void (*)();  ///< the function that waits call

    /// Thrown by a wait that lasts until the deadline.
    struct WEIR_EXPORT deadline_passed {};

    /// `asked` may be null: then waits are not ended.
    [[nodiscard]] explicit interruptible(question asked) noexcept;
    /// The same; waits also end, with deadline_passed, at the deadline. `asked` is not null.
    [[nodiscard]] interruptible(question asked, std::chrono::steady_clock::time_point deadline) noexcept;
    /// Restores the former object.
    ~interruptible();
    interruptible(const interruptible&) = delete;
    interruptible& operator=(const interruptible&) = delete;

    /// Throws the exception that has ended a wait of the thread's, if one was ended.
    void expect_not_ended() const {
        if (ended_) {
            std::rethrow_exception(ended_);
        }
    }

    // For Weir's own use.

    /// The calling thread's innermost object; null if its waits are not ended.
    [[nodiscard]] static interruptible* current() noexcept;
    /// Whether a wait was ended.
    [[nodiscard]] bool has_ended() const noexcept { return ended_ != nullptr; }
    /// Calls the function. Throws what it throws, and what it threw before; deadline_passed.
    void ask();
    /// How long a wait may sleep before it calls `ask`.
    [[nodiscard]] std::chrono::nanoseconds longest_sleep() const noexcept;
    /// For loops that poll: calls the function if enough time has passed. Returns whether the wait may continue.
    [[nodiscard]] bool may_go_on() noexcept;

private:
    question asked_;
    interruptible** of_thread_;  ///< the thread's pointer to its innermost object
    interruptible* before_;
    std::exception_ptr ended_;
    std::optional<std::chrono::steady_clock::time_point> deadline_;  ///< none: waits may last for ever
    long long asked_at_ = 0;                                         ///< in nanoseconds of the steady clock
};

}  // namespace weir::detail
