#pragma once

#include <deque>
#include <mutex>
#include <optional>

#include "backend/backend.hpp"
#include "backend/cuda/device/device_context.hpp"
#include "backend/cuda/streams/event_pool.hpp"
#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::backend::cuda {

/// Progress of all work in a context: Weir's and that of other code, in streams that Weir does not know or that were destroyed while
/// busy (rule L5). Each epoch of its timeline is a driver event that covers all of that (cuCtxRecordEvent). Such
/// events also cover gates, and work that is enqueued to open them: they are only queried, and no stream ever waits for one.
///
/// Any thread, under no lock.
class context_end {
public:
    /// Throws std::bad_alloc.
    context_end(device_context& in, const driver& of);
    context_end(const context_end&) = delete;
    context_end& operator=(const context_end&) = delete;

    /// A point that is complete once all work that is in the context now is complete. Ends any capture that runs in the context.
    /// Empty if the driver has no such event (before 12.5), or cannot make one.
    [[nodiscard]] std::optional<point> record() noexcept;
    /// The same, but blocks until all work is complete: for drivers without the event. False if it fails.
    [[nodiscard]] bool await() noexcept;
    /// Completes epochs whose events are complete. Whether events are left to look at.
    bool look() noexcept;

    [[nodiscard]] timeline_id number() const noexcept { return line_->number(); }

private:
    struct recorded {
        epoch at;
        event_ref event;
    };
    [[nodiscard]] epoch over() noexcept;

    device_context* in_;
    timeline* line_;
    detail::mutex completing_;  ///< held by the completing thread; lock order: before mutex_
    detail::mutex mutex_;       ///< guards what follows; a leaf in the lock order
    epoch last_;
    /// Threads that record at the same time add their events in any order: an epoch is complete once its event and all earlier ones are.
    std::deque<recorded> events_;
};

}  // namespace weir::backend::cuda
