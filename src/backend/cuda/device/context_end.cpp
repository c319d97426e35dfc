#include "backend/cuda/device/context_end.hpp"

#include <utility>

#include "backend/cuda/api/driver_api.hpp"
#include "backend/cuda/streams/watcher.hpp"

namespace weir::backend::cuda {

context_end::context_end(device_context& in, const driver& of)
    : in_(&in),
      line_(&timeline_table::instance().at(timeline_table::instance().acquire(&of))),
      last_(line_->completed()) {}

std::optional<point> context_end::record() noexcept {
    if (in_->is_broken()) {
        return point{line_->number(), line_->completed()};  // nothing runs in the context any more
    }
    if (in_->api().context_record_event == nullptr) {
        return std::nullopt;
    }
    point made;
    try {
        const in_relaxed_context here(*in_);
        event_ref event = in_->events.take();
        // Under no lock: the driver may block, and threads that look must be able to find complete events meanwhile.
        if (const result failed = in_->api().context_record_event(in_->handle(), event.handle()); failed != success) {
            in_->note_error(failed);
            return std::nullopt;
        }
        const std::lock_guard lock(mutex_);
        events_.push_back({last_ + 1, std::move(event)});
        made = {line_->number(), ++last_};
    } catch (...) {
        return std::nullopt;  // no memory, or no event: the caller tries again
    }
    watcher::instance().add(*this);
    return made;
}

bool context_end::await() noexcept {
    const in_relaxed_context here(*in_);
    const result answer = in_->api().context_synchronize();
    in_->note_error(answer);
    return answer == success || in_->is_broken();
}

/// The epoch up to which everything is complete; drops the events for it.
epoch context_end::over() noexcept {
    epoch reached = 0;
    const in_relaxed_context here(*in_);
    for (;;) {
        recorded first;
        {
            const std::lock_guard lock(mutex_);
            while (!events_.empty() && events_.front().at <= reached) {
                events_.pop_front();
            }
            if (events_.empty()) {
                return reached;
            }
            first = events_.front();
        }
        const result answer = in_->api().event_query(first.event.handle());
        if (answer == error_not_ready) {
            return reached;
        }
        if (answer != success && !in_->note_error(answer)) {
            return reached;
        }
        reached = first.at;  // in a broken context everything counts as complete
    }
}

bool context_end::look() noexcept {
    {
        const std::unique_lock completing(completing_, std::try_to_lock);
        if (completing.owns_lock()) {
            if (const epoch reached = over(); reached > line_->completed()) {
                line_->complete(reached);
            }
        }
    }
    const std::lock_guard lock(mutex_);
    return !events_.empty();
}

}  // namespace weir::backend::cuda
