#include "backend/cuda/lane_events.hpp"

#include <utility>

namespace weir::backend::cuda {

lane_events::recorded lane_events::middle_of_those_behind(epoch at) const noexcept {
    const std::uint64_t found = place_behind(at);
    return found == ring_.end() ? recorded() : ring_[found + (ring_.end() - found) / 2];
}

bool lane_events::cover(epoch at, bool is_mark) noexcept {
    if (ring_.empty()) {
        return false;
    }
    recorded& last = ring_[ring_.end() - 1];
    if (last.at < at) {
        return false;
    }
    last.is_mark = last.is_mark || is_mark;
    return true;
}

/// Where it does not come last: `place` is the last one's, and nothing is there.
void lane_events::insert(std::uint64_t place, recorded&& added) noexcept {
    for (; place != ring_.first() && added.at < ring_[place - 1].at; --place) {
        ring_[place] = std::move(ring_[place - 1]);
    }
    ring_[place] = std::move(added);
}

/// The second one is a mark.
event_ref lane_events::leave_another_out() noexcept {
    const std::uint64_t first = ring_.first();
    for (std::uint64_t i = first + 2; i + 1 < ring_.end(); ++i) {
        if (!ring_[i].is_mark) {
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

[[gnu::hot]] event_ref lane_events::take_first(epoch over) noexcept {
    if (ring_.empty() || ring_[ring_.first()].at > over) {
        return {};
    }
    event_ref taken = std::move(ring_[ring_.first()].event);
    ring_.drop_before(ring_.first() + 1);
    return taken;
}

}  // namespace weir::backend::cuda
