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
    /// The last one; without an event if there is none.
    [[nodiscard]] recorded last() const noexcept {
        return ring_.empty() || !ring_[ring_.end() - 1].event.is_recorded() ? recorded() : ring_[ring_.end() - 1];
    }

    /// The first that stands behind `at` or a later epoch; null if there is none. Until the next change.
    [[nodiscard]] const recorded* behind(epoch at) const noexcept {
        for (std::uint64_t found = place_behind(at); found != ring_.end(); ++found) {
            if (ring_[found].event.is_recorded()) [[likely]] {
                return &ring_[found];
            }
        }
        return nullptr;
    }
    /// The one in the middle of all that do; without an event if there is none.
    [[nodiscard]] recorded middle_of_those_behind(epoch at) const noexcept;
    /// Whether there is one for `at`. If so, and `is_mark`, the last one is a mark from now on.
    [[nodiscard]] bool cover(epoch at, bool is_mark) noexcept;

    /// Throws std::bad_alloc; nothing has changed then.
    void add(recorded&& added);
    /// Fewer events are quicker found and sooner used again: if there are more than `most`, takes one out, but never a mark. Who
    /// waits for its epoch gets the next later one. Empty if none was taken out.
    [[nodiscard]] event_ref leave_one_out(std::size_t most) noexcept;
    /// The same, and adds it for `at`, which is behind all others: for who records it then, and says so in it. Null if it must be
    /// another one.
    [[nodiscard]] pooled_event* use_one_again(epoch at, std::size_t most) noexcept {
        if (ring_.size() <= most) [[unlikely]] {
            return nullptr;
        }
        recorded& first = ring_[ring_.first()];
        recorded& second = ring_[ring_.first() + 1];
        pooled_event* const again = second.event.get();
        if (second.is_mark || !second.event.is_only_one() || !second.event.is_recorded()) [[unlikely]] {
            return nullptr;
        }
        again->is_recorded.store(false, std::memory_order_relaxed);
        // The first one takes its place.
        second.at = first.at;
        second.is_mark = first.is_mark;
        second.event.swap(first.event);
        ring_.drop_before(ring_.first() + 1);
        recorded& last = ring_.push();
        last.at = at;
        last.is_mark = false;
        last.event.swap(first.event);  // nothing, if it is the same place
        return again;
    }
    /// Takes out one that `use_one_again` answered and that was not recorded.
    void forget(const pooled_event& one) noexcept;
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

    ring<recorded> ring_;
};

}  // namespace weir::backend::cuda
