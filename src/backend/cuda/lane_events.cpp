#include "backend/cuda/lane_events.hpp"

#include <utility>

namespace weir::backend::cuda {

lane_events::recorded lane_events::middle_of_those_behind(epoch at) const noexcept {
    const std::uint64_t found = place_behind(at);
    return found == ring_.end() ? recorded() : if_recorded(found + (ring_.end() - found) / 2);
}

bool lane_events::cover(epoch at, bool is_mark) noexcept {
    if (ring_.empty()) {
        return false;
    }
    recorded& last = ring_[ring_.end() - 1];
    if (last.at < at || !last.event.is_recorded()) {
        return false;
    }
    last.is_mark = last.is_mark || is_mark;
    return true;
}

void lane_events::add(recorded&& added, std::size_t most) {
    if (!ring_.has_room_for(1) && ring_.size() < most) {
        ring_.resize(ring_.size() + 1);
    }
    if (ring_.size() >= most) {
        leave_one_out();
    }
    if (!ring_.has_room_for(1)) {
        ring_.resize(ring_.size() + 1);  // marks alone
    }
    // As a rule it is the last one.
    std::uint64_t place = ring_.end();
    static_cast<void>(ring_.push());
    for (; place != ring_.first() && added.at < ring_[place - 1].at; --place) {
        ring_[place] = std::move(ring_[place - 1]);
    }
    ring_[place] = std::move(added);
}

/// Takes out an element: those before it move up, and its event stays where the first one was.
void lane_events::take_out(std::uint64_t place) noexcept {
    for (; place != ring_.first(); --place) {
        recorded& one = ring_[place];
        recorded& before = ring_[place - 1];
        one.at = before.at;
        one.is_mark = before.is_mark;
        one.event.swap(before.event);
    }
    ring_.drop_before(ring_.first() + 1);
}

void lane_events::leave_another_out() noexcept {
    for (std::uint64_t i = ring_.first() + 1; i + 1 < ring_.end(); ++i) {
        if (!ring_[i].is_mark && ring_[i].event.is_recorded()) {
            take_out(i);
            return;
        }
    }
}

void lane_events::forget(const pooled_event& one) noexcept {
    for (std::uint64_t place = ring_.end(); place != ring_.first(); --place) {
        if (ring_[place - 1].event.get() == &one) {
            ring_[place - 1].event.get()->is_recorded.store(true,
                                                            std::memory_order_relaxed);  // as one that nobody uses
            take_out(place - 1);
            return;
        }
    }
}

void lane_events::drop_until(epoch over) noexcept {
    while (!ring_.empty() && ring_[ring_.first()].at <= over && ring_[ring_.first()].event.is_recorded()) {
        ring_.drop_before(ring_.first() + 1);
    }
}

}  // namespace weir::backend::cuda
