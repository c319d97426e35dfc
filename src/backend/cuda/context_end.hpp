#pragma once

#include <deque>
#include <mutex>
#include <optional>

#include "backend/backend.hpp"
#include "backend/cuda/device_context.hpp"
#include "backend/cuda/event_pool.hpp"
#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::backend::cuda {

/// How far everything in a context is: work of Weir's, of others, in streams that nobody knows of or that were destroyed while
/// busy (rule L5). Each epoch of its timeline is an event of the driver's that covers all of that (cuCtxRecordEvent). Such
/// events cover gates, and work that is enqueued to open them: they are looked at, and no stream ever waits for one.
///
/// Any thread, under no lock.
class context_end {
public:
    /// Throws std::bad_alloc.
    context_end(device_context& in, const driver& of);
    context_end(const context_end&) = delete;
    context_end& operator=(const context_end&) = delete;

    /// A point that is over once everything that is in the context now is over. Ends any capture that runs in the context.
    /// Empty if the driver has no such event (before 12.5), or gives none.
    [[nodiscard]] std::optional<point> mark() noexcept;
    /// The same, blocking until that is so: for drivers without the event. Whether it is.
    [[nodiscard]] bool await() noexcept;
    /// Completes what is over. Whether there is more to look at.
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
    detail::mutex completing_;  ///< of the thread that completes; before mutex_
    detail::mutex mutex_;       ///< guards what follows; a leaf in the lock order
    epoch last_;
    /// Threads that mark at the same time come in any order: an epoch is over once its event and those before it are.
    std::deque<recorded> events_;
};

}  // namespace weir::backend::cuda
