#pragma once

#include <algorithm>
#include <vector>

#include "frontier/point.hpp"
#include "order/mark.hpp"

namespace weir::order {

/// Where on one timeline a *gate* may stand: an operation whose end is decided by something outside the device (a host task, a
/// collective, foreign work, a wait on memory).
///
/// A backend that must record an event for an epoch after the fact may record it later than asked, which waits for more than needed. But
/// it must never record it behind a gate: that wait might never end (rule O7).
///
/// An operation that waits for a point behind a gate (`holds_back`) ends no sooner than that gate and must be noted as a gate, too: an
/// event recorded behind it would wait for the gate as well.
class gate_log {
public:
    /// Notes that the operation at `at` may be a gate. Epochs are noted in increasing order.
    void note(epoch at) {
        if (gates_.empty() || gates_.back() < at) {
            gates_.push_back(at);
        }
    }

    /// The last epoch at which an event that stands for `wanted` may be recorded, given the timeline's tail.
    [[nodiscard]] epoch latest_record(epoch wanted, epoch tail) const noexcept {
        const auto gate = std::upper_bound(gates_.begin(), gates_.end(), wanted);
        return gate == gates_.end() ? tail : std::min(*gate - 1, tail);
    }

    /// Whether the operation at `at` is a gate or stands behind one that is not complete, as far as `prune` knows.
    [[nodiscard]] bool holds_back(epoch at) const noexcept { return !gates_.empty() && gates_.front() <= at; }

    /// Drops the gates that are complete.
    void prune(epoch completed) {
        std::erase_if(gates_, [&](epoch gate) { return gate <= completed; });
    }

private:
    std::vector<epoch> gates_;
};

}  // namespace weir::order
