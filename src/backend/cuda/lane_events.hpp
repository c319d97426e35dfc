#pragma once

#include <cstddef>
#include <cstdint>

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
    [[nodiscard]] const recorded* behind(epoch at) const noexcept;
    /// The one in the middle of all that do; without an event if there is none.
    [[nodiscard]] recorded middle_of_those_behind(epoch at) const noexcept;
    /// Whether there is one for `at`. If so, and `is_mark`, the last one is a mark from now on.
    [[nodiscard]] bool cover(epoch at, bool is_mark) noexcept;

    /// Throws std::bad_alloc; nothing has changed then.
    void add(recorded&& added);
    /// Fewer events are quicker found and sooner used again: if there are more than `most`, takes one out, but never a mark. Who
    /// waits for its epoch gets the next later one. Empty if none was taken out.
    [[nodiscard]] event_ref leave_one_out(std::size_t most) noexcept;
    /// Takes out the first one, if it stands behind `over` or an earlier epoch; else the answer is empty.
    [[nodiscard]] event_ref take_first(epoch over) noexcept;

private:
    [[nodiscard]] std::uint64_t place_behind(epoch at) const noexcept;

    ring<recorded> ring_;
};

}  // namespace weir::backend::cuda
