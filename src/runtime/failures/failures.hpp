#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <span>

#include "frontier/point.hpp"
#include "runtime/failures/failure.hpp"

namespace weir::runtime {

/// Operations that failed, or that did not run because they depend on one that failed. Kept until they are reported (rule K4).
class failures {
public:
    /// Must be called before anything can fail. Throws std::bad_alloc.
    static void arm();

    /// Notes that the operation at `at` failed. Called by the thread that ran, or did not run, the operation, before its epoch
    /// completes. As long as operations that have not run may depend on it, `backend::queue_events::has_pending_failures`.
    static void note(frontiers::point at, const failure_ptr& what) noexcept;

    /// Whether any operation ever failed: if not, the other questions need not be asked.
    [[nodiscard]] static bool any() noexcept { return any_.load(std::memory_order_relaxed); }

    /// The failure of the operation at exactly `at`; null if it did not fail.
    [[nodiscard]] static failure_ptr of(frontiers::point at) noexcept;
    /// An operation that depends on `at` is about to be enqueued: if `at` failed, that failure is pending until nothing depends on it.
    static void expect_dependent(frontiers::point at) noexcept;

    /// Throws operation_error if the operation at exactly `at` failed, or did not run because another failed; does so at each
    /// call. Other operations of the stream do not count: those that this one depends on have kept it from running.
    static void throw_if_failed(frontiers::point at);
    /// Throws operation_error for the first failure at or before one of the points, each on its timeline, that was not reported
    /// yet. Marks as reported all operations on these timelines that failed for the same reason.
    static void throw_first_unreported(std::span<const frontiers::point> upto);
    static void throw_first_unreported(frontiers::point upto) { throw_first_unreported({&upto, 1}); }
    /// Throws operation_error for `what`, and marks it as reported.
    [[noreturn]] static void raise(const failure_ptr& what);

    /// The timeline's stream is gone: its failures are not reported any more, except by `throw_if_failed`. The debug log names
    /// them.
    static void forget_unreported(frontiers::timeline_id timeline) noexcept;

    /// The points on which operations that have not run may depend, each with a number that changes when another such operation
    /// is enqueued. Throws std::bad_alloc.
    using dependencies = std::map<std::pair<frontiers::timeline_id, frontiers::epoch>, std::uint64_t>;
    [[nodiscard]] static dependencies awaited();
    /// No operation depends on these points any more.
    static void no_longer_awaited(const dependencies& which) noexcept;

private:
    static inline std::atomic<bool> any_{false};
};

}  // namespace weir::runtime
