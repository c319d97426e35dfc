#pragma once

#include <utility>

#include "frontier/point.hpp"
#include "order/plan.hpp"
#include "order/short_plan.hpp"

namespace weir::order {

/// The logical side of one stream: how far it has been filled, and what its next operation is ordered after.
///
/// Two steps, so that nothing is half done when memory runs out: make a plan (may fail, changes nothing), then commit
/// it (cannot fail). Not synchronised: the runtime guards it with the stream's lock.
class sequencer {
public:
    explicit sequencer(timeline_id timeline, epoch tail = 0) noexcept
        : timeline_(timeline), before_(tail), tail_(tail) {}

    [[nodiscard]] timeline_id timeline() const noexcept { return timeline_; }

    /// The epoch of the last operation; what was before the first one if there is none yet.
    [[nodiscard]] epoch tail() const noexcept { return tail_; }
    [[nodiscard]] const clock& known() const noexcept { return known_; }

    /// The stream's tail at this moment: what an event that is recorded now holds (rule S2). Before the first operation
    /// that is "before everything", and not the end of whoever had the timeline before: to wait for a stream that has done
    /// nothing says nothing about another stream. Nor does it know of work that others put into the stream: where they
    /// may, an event and a wait for the stream take `enter_foreign`.
    [[nodiscard]] mark record() const { return {{timeline_, tail_ == before_ ? 0 : tail_}, known_}; }

    /// An empty plan for the next operation.
    [[nodiscard]] plan next(const watermarks& completed, bool keep_evidence = false) const {
        return {timeline_, tail_, known_, completed, keep_evidence};
    }

    /// Reserves the epoch of an operation that issues no waits.
    mark reserve() noexcept { return {{timeline_, ++tail_}, known_}; }

    /// Commits a plan: reserves the epoch of the operation that issues its waits. From this epoch on the stream is
    /// ordered after `after` (the plan's `clock_after`).
    ///
    /// The clock moves only together with the tail, so that a wait that the program asks for, with no operation behind
    /// it, takes an epoch, too. Otherwise two events, recorded before and after that wait, would hold the same point,
    /// and whoever knows the first would take the wait for the second, which means more, for implied.
    mark reserve(clock after) noexcept {
        known_ = std::move(after);
        return reserve();
    }

    /// The same for a short plan with waits that is prepared for what `is_sole` says. The operation's clock is `known`, which the
    /// stream alone has then.
    epoch reserve(short_plan& with) noexcept {
        const epoch at = ++tail_;
        advance(with);
        return at;
    }
    /// Reserves the epoch of an operation that issues no waits: its clock is `known`.
    epoch reserve_next() noexcept { return ++tail_; }
    /// Whether nobody else has the stream's clock.
    [[nodiscard]] bool is_sole() const noexcept { return known_.is_sole(); }

    /// A fresh epoch that stands for whatever others have put into this stream since Weir last looked (rules O2, X6):
    /// nothing known about an earlier epoch covers it, so elision never spans two entries.
    mark enter_foreign() noexcept { return reserve(); }

private:
    [[gnu::noinline, gnu::hot]] void advance(short_plan& with) noexcept { with.advance(known_); }

    timeline_id timeline_;
    epoch before_;  ///< the last epoch of the timeline that is not this stream's
    epoch tail_;
    clock known_;
};

}  // namespace weir::order
