#include "backend/cuda/lane_events.hpp"

#include <utility>

namespace weir::backend::cuda {

lane_events::recorded lane_events::middle_of_those_behind(epoch at) const noexcept {
    const std::uint64_t found = place_behind(at);
    const std::uint64_t middle = found + (ring_.end() - found) / 2;
    return found == ring_.end() || !ring_[middle].event.is_recorded() ? recorded() : ring_[middle];
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

[[gnu::hot]] void lane_events::add(recorded&& added) {
    if (!ring_.has_room_for(1)) [[unlikely]] {
        ring_.resize(ring_.size() + 1);
    }
    // As a rule it is the last one.
    std::uint64_t place = ring_.end();
    static_cast<void>(ring_.push());
    for (; place != ring_.first() && added.at < ring_[place - 1].at; --place) {
        ring_[place] = std::move(ring_[place - 1]);
    }
    ring_[place] = std::move(added);
}

[[gnu::hot]] event_ref lane_events::leave_one_out(std::size_t most) noexcept {
    if (ring_.size() <= most) {
        return {};
    }
    const std::uint64_t first = ring_.first();
    for (std::uint64_t i = first + 1; i + 1 < ring_.end(); ++i) {
        if (!ring_[i].is_mark && ring_[i].event.is_recorded()) {
            event_ref left_out = std::move(ring_[i].event);
            for (; i != first; --i) {
                ring_[i] = std::move(ring_[i - 1]);
            }
            ring_.drop_before(first + 1);
            return left_out;
        }
    }
    return {};
}

void lane_events::forget(const pooled_event& one) noexcept {
    std::uint64_t place = ring_.end();
    while (place != ring_.first() && ring_[place - 1].event.get() != &one) {
        --place;
    }
    if (place == ring_.first()) {
        return;
    }
    event_ref forgotten = std::move(ring_[place - 1].event);
    forgotten.get()->is_recorded.store(true, std::memory_order_relaxed);  // as one that nobody uses
    for (--place; place != ring_.first(); --place) {
        ring_[place] = std::move(ring_[place - 1]);
    }
    ring_.drop_before(ring_.first() + 1);
}

[[gnu::hot]] event_ref lane_events::take_first(epoch over) noexcept {
    if (ring_.empty() || ring_[ring_.first()].at > over || !ring_[ring_.first()].event.is_recorded()) {
        return {};
    }
    event_ref taken = std::move(ring_[ring_.first()].event);
    ring_.drop_before(ring_.first() + 1);
    return taken;
}

}  // namespace weir::backend::cuda
