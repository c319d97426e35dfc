#pragma once

#include <cstdint>
#include <utility>

#include "frontier/point.hpp"
#include "order/plan.hpp"
#include "order/short_plan.hpp"

namespace weir::order {

/// The logical side of one stream: how far it has been filled, and what its next operation is ordered after.
///
/// Two steps, so that nothing is half done when memory runs out: make a plan (may fail, changes nothing), then commit it (cannot fail).
/// Not synchronized: the runtime guards it with the stream's lock.
class sequencer {
public:
    explicit sequencer(timeline_id timeline, epoch tail = 0) noexcept
        : timeline_(timeline), before_(tail), tail_(tail) {}

    [[nodiscard]] timeline_id timeline() const noexcept { return timeline_; }

    /// The epoch of the last operation; before the first operation, the last epoch of the timeline's former stream.
    [[nodiscard]] epoch tail() const noexcept { return tail_; }
    /// How many epochs this stream has reserved: its operations, and what stands in the stream for waits and for work of other code.
    [[nodiscard]] std::uint64_t reserved() const noexcept { return tail_ - before_; }
    [[nodiscard]] const clock& known() const noexcept { return known_; }

    /// The stream's tail at this moment: what an event that is recorded now holds (rule S2). Before the first operation that is "before
    /// everything", and not the end of the stream that had the timeline before: a wait for a stream that has done nothing must not order
    /// anything after another stream. Does not include work that other code puts into the stream: if there may be such work, an event and a
    /// wait for the stream use `enter_foreign`.
    [[nodiscard]] mark record() const { return {{timeline_, tail_ == before_ ? 0 : tail_}, known_}; }

    /// An empty plan for the next operation.
    [[nodiscard]] plan next(const watermarks& completed, bool keep_evidence = false) const {
        return {timeline_, tail_, known_, completed, keep_evidence};
    }

    /// Reserves the epoch of an operation that issues no waits.
    mark reserve() noexcept { return {{timeline_, ++tail_}, known_}; }

    /// Commits a plan: reserves the epoch of the operation that issues its waits. From this epoch on the stream is ordered after `after`
    /// (the plan's `clock_after`).
    ///
    /// The clock changes only together with the tail. So a wait that the program asks for takes an epoch even if no operation follows it.
    /// Otherwise two events, recorded before and after that wait, would hold the same point; a stream that is ordered after the first
    /// would then treat the wait for the second as implied, although the second means more.
    mark reserve(clock after) noexcept {
        known_ = std::move(after);
        return reserve();
    }

    /// The same for a short plan with waits, prepared with the present value of `is_sole`. The operation's clock is `known`, to which then
    /// only the stream refers.
    epoch reserve(short_plan& with) noexcept {
        const epoch at = ++tail_;
        advance(with);
        return at;
    }
    /// Reserves the epoch of an operation that issues no waits: its clock is `known`.
    epoch reserve_next() noexcept { return ++tail_; }
    /// Whether only the stream refers to its clock.
    [[nodiscard]] bool is_sole() const noexcept { return known_.is_sole(); }

    /// A fresh epoch that stands for everything that other code has put into this stream since the last such epoch (rules O2, X6). What is
    /// known about an earlier epoch never covers it, so elision never spans two entries.
    mark enter_foreign() noexcept { return reserve(); }

private:
    [[gnu::noinline, gnu::hot]] void advance(short_plan& with) noexcept { with.advance(known_); }

    timeline_id timeline_;
    epoch before_;  ///< the last epoch of the timeline's former stream
    epoch tail_;
    clock known_;
};

}  // namespace weir::order
