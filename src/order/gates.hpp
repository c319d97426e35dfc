#pragma once

#include <vector>

#include "order/mark.hpp"

namespace weir::order {

/// Where on one timeline a *gate* may stand: an operation whose end something outside the device decides (a host task,
/// a collective, foreign work, a wait on memory).
///
/// A backend that has to record an event for an epoch after the fact may record it later than asked, which waits for
/// more than needed, but never behind a gate: that could wait for ever (rule O7).
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
        for (const epoch gate : gates_) {
            if (gate > wanted) {
                return gate - 1 < tail ? gate - 1 : tail;
            }
        }
        return tail;
    }

    /// Forgets the gates that are over.
    void prune(epoch completed) {
        std::erase_if(gates_, [&](epoch gate) { return gate <= completed; });
    }

private:
    std::vector<epoch> gates_;
};

}  // namespace weir::order
