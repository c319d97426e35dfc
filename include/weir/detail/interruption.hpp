// Ends a wait of the host's from within. Layer: backend.
#pragma once

#include <exception>

#include "weir/export.hpp"

namespace weir::detail {

/// While it lives, the waits of the calling thread call `asked` some twenty times a second, under no lock: what it throws
/// ends the wait, and the call that waited throws it. For languages whose users end a program that waits. Nests: the
/// innermost counts.
///
/// A wait within the enqueueing of work cannot throw: what is half enqueued would be lost. It only ends, the work goes on to
/// wait without the caller, the thread waits for nothing more, and `expect_not_ended` throws at the end of the call.
class WEIR_EXPORT interruptible {
public:
    using question = void (*)();  ///< what is called

    /// Null: waits are not ended.
    explicit interruptible(question asked) noexcept;
    /// As before.
    ~interruptible();
    interruptible(const interruptible&) = delete;
    interruptible& operator=(const interruptible&) = delete;

    /// Throws what has ended a wait of the thread's, if one was ended.
    void expect_not_ended() const {
        if (ended_) {
            std::rethrow_exception(ended_);
        }
    }

    // For Weir's own use.

    /// The calling thread's; null if its waits are not ended.
    [[nodiscard]] static interruptible* current() noexcept;
    /// Whether a wait was ended.
    [[nodiscard]] bool has_ended() const noexcept { return ended_ != nullptr; }
    /// Asks. Throws what the question throws, and what it threw before.
    void ask();
    /// Asks if it is time to, for those that look again and again. Whether the wait may go on.
    [[nodiscard]] bool may_go_on() noexcept;

private:
    question asked_;
    interruptible** of_thread_;  ///< where its innermost one is known
    interruptible* before_;
    std::exception_ptr ended_;
    long long asked_at_ = 0;  ///< in nanoseconds of the steady clock
};

}  // namespace weir::detail
