#include "backend/cuda/streams/driver_stream_events.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace weir::backend::cuda {

driver_stream_events::recorded driver_stream_events::middle_of_those_behind(epoch at) const noexcept {
    const std::uint64_t found = place_behind(at);
    return found == ring_.end() ? recorded() : if_recorded(found + (ring_.end() - found) / 2);
}

bool driver_stream_events::cover(epoch at, bool is_pinned) noexcept {
    if (ring_.empty()) {
        return false;
    }
    recorded& last = ring_[ring_.end() - 1];
    if (last.at < at || !last.event.is_recorded()) {
        return false;
    }
    last.is_pinned = last.is_pinned || is_pinned;
    return true;
}

void driver_stream_events::add(recorded&& added) {
    if (!ring_.has_room_for(1) && !leave_some_out()) {
        ring_.resize(std::max(few, ring_.size() + 1));
    }
    // Usually it is the last one.
    std::uint64_t place = ring_.end();
    static_cast<void>(ring_.push());
    for (; place != ring_.first() && added.at < ring_[place - 1].at; --place) {
        ring_[place] = std::move(ring_[place - 1]);
    }
    ring_[place] = std::move(added);
}

void driver_stream_events::keep_more() noexcept {
    if (ring_.capacity() < most) {
        try {
            ring_.resize(std::max(few, 2 * ring_.capacity()));
        } catch (const std::bad_alloc&) {
            // Half of the events are left out instead: a wait for such an operation then covers a later one, too.
        }
    }
}

/// Moves an element into the slot of one that is left out; the event of that one goes to the old slot.
void driver_stream_events::move(std::uint64_t from, std::uint64_t to) noexcept {
    recorded& moved = ring_[from];
    recorded& out = ring_[to];
    out.at = moved.at;
    out.is_pinned = moved.is_pinned;
    out.event.swap(moved.event);
}

/// Takes out an element: those before it move up.
void driver_stream_events::take_out(std::uint64_t place) noexcept {
    for (; place != ring_.first(); --place) {
        move(place - 1, place);
    }
    ring_.drop_before(ring_.first() + 1);
}

const driver_stream_events::recorded* driver_stream_events::find_behind(epoch at) const noexcept {
    for (std::uint64_t found = place_behind(at); found != ring_.end(); ++found) {
        if (ring_[found].event.is_recorded()) {
            return &ring_[found];
        }
    }
    return nullptr;
}

bool driver_stream_events::has_unrecorded(epoch upto) const noexcept {
    for (std::uint64_t place = ring_.first(); place != ring_.end() && ring_[place].at <= upto; ++place) {
        if (!ring_[place].event.is_recorded()) {
            return true;
        }
    }
    return false;
}

[[gnu::hot]] bool driver_stream_events::leave_some_out() noexcept {
    if (ring_.empty()) {
        return false;
    }
    const std::uint64_t first = ring_.first();
    std::uint64_t to = ring_.end() - (ring_.size() / 2 - 1);  // elements from here on stay
    for (std::uint64_t i = to - 1; i != first; --i) {
        if (ring_[i].is_pinned || !ring_[i].event.is_recorded()) {
            move(i, --to);
        }
    }
    move(first, --to);
    ring_.drop_before(to);
    return ring_.has_room_for(1);
}

void driver_stream_events::forget(const pooled_event& one) noexcept {
    for (std::uint64_t place = ring_.end(); place != ring_.first(); --place) {
        if (ring_[place - 1].event.get() == &one) {
            ring_[place - 1].event.get()->is_recorded.store(true,
                                                            std::memory_order_relaxed);  // as an event without users
            take_out(place - 1);
            return;
        }
    }
}

void driver_stream_events::drop_until(epoch over) noexcept {
    while (!ring_.empty() && ring_[ring_.first()].at <= over && ring_[ring_.first()].event.is_recorded()) {
        ring_.drop_before(ring_.first() + 1);
    }
}

}  // namespace weir::backend::cuda
