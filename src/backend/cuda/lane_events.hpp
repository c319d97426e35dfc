#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "backend/cuda/event_pool.hpp"
#include "backend/ring.hpp"
#include "backend/timeline.hpp"

namespace weir::backend::cuda {

/// The events that were recorded in one stream and are not known to be over, in the order of the epochs that they stand behind.
/// Not synchronised: the lane's lock guards it. In the steady state nothing is allocated.
class lane_events {
public:
    struct recorded {
        epoch at = 0;  ///< the event is over once this is, and not before
        event_ref event;
        bool is_mark = false;  ///< what comes later may wait for anything (rule O7): nobody gets that event instead
    };

    [[nodiscard]] bool empty() const noexcept { return ring_.empty(); }
    [[nodiscard]] const recorded& last() const noexcept { return ring_[ring_.end() - 1]; }

    /// The first that stands behind `at` or a later epoch; null if there is none. Until the next change.
    [[nodiscard]] const recorded* behind(epoch at) const noexcept {
        const std::uint64_t found = place_behind(at);
        return found == ring_.end() ? nullptr : &ring_[found];
    }
    /// The one in the middle of all that do; without an event if there is none.
    [[nodiscard]] recorded middle_of_those_behind(epoch at) const noexcept;
    /// Whether there is one for `at`. If so, and `is_mark`, the last one is a mark from now on.
    [[nodiscard]] bool cover(epoch at, bool is_mark) noexcept;

    /// Throws std::bad_alloc; nothing has changed then.
    void add(recorded&& added) {
        if (!ring_.has_room_for(1)) [[unlikely]] {
            ring_.resize(ring_.size() + 1);
        }
        const std::uint64_t place = ring_.end();
        recorded& last = ring_.push();
        if (place == ring_.first() || ring_[place - 1].at <= added.at) [[likely]] {
            last = std::move(added);
        } else {
            insert(place, std::move(added));
        }
    }
    /// Fewer events are quicker found and sooner used again: if there are more than `most`, takes one out, but never a mark. Who
    /// waits for its epoch gets the next later one. Empty if none was taken out.
    [[nodiscard]] event_ref leave_one_out(std::size_t most) noexcept {
        if (ring_.size() <= most) {
            return {};
        }
        const std::uint64_t first = ring_.first();
        recorded& second = ring_[first + 1];
        if (second.is_mark) [[unlikely]] {
            return leave_another_out();
        }
        event_ref left_out = std::exchange(second.event, std::move(ring_[first].event));
        second.at = ring_[first].at;
        second.is_mark = ring_[first].is_mark;
        ring_.drop_before(first + 1);
        return left_out;
    }
    /// Takes out the first one, if it stands behind `over` or an earlier epoch; else the answer is empty.
    [[nodiscard]] event_ref take_first(epoch over) noexcept;

private:
    /// Looked for from behind, since most wait for what came last.
    [[nodiscard]] std::uint64_t place_behind(epoch at) const noexcept {
        std::uint64_t found = ring_.end();
        while (found != ring_.first() && ring_[found - 1].at >= at) {
            --found;
        }
        return found;
    }
    void insert(std::uint64_t place, recorded&& added) noexcept;
    [[nodiscard]] event_ref leave_another_out() noexcept;

    ring<recorded> ring_;
};

}  // namespace weir::backend::cuda
