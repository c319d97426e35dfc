#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "frontier/frontier.hpp"
#include "frontier/point.hpp"
#include "order/mark.hpp"
#include "order/plan.hpp"
#include "weir/detail/rare.hpp"

namespace weir::order {

/// Finds the same waits as `plan`, for an operation that must come after accesses on the first timelines alone (those below
/// frontier::direct), as most programs have no others. There each timeline has a place of its own: nothing is searched for,
/// nothing is allocated. It keeps no evidence and no reasons, so it is not for operations that somebody is told of.
///
/// Use: `need` for each access, then `resolve`, then read `waits`. An answer of false means that this plan cannot tell: begin
/// anew with a `plan`. Refers to the clocks of what it is told, as `plan` does.
class short_plan {
public:
    short_plan() = default;
    /// As of `plan`.
    short_plan(timeline_id self, const clock& known) noexcept { begin(self, known); }
    /// Begins anew, as of `plan`. The places of an earlier plan are used again.
    void begin(timeline_id self, const clock& known) noexcept {
        known_ = known.get();
        self_ = self;
        named_ = 0;
        count_ = 0;
    }

    /// The timeline of the operation.
    [[nodiscard]] timeline_id self() const noexcept { return self_; }

    /// States that the operation must come after `target`.
    [[nodiscard]] bool need(const mark& target) noexcept {
        const timeline_id of = target.at.timeline;
        if (of == self_) {
            return true;  // the stream runs its operations in order
        }
        if (of >= frontier::direct) [[unlikely]] {
            return false;
        }
        const epoch at = target.at.at;
        if (is_known(of, at)) {
            return true;
        }
        const std::uint64_t bit = std::uint64_t{1} << of;
        if ((named_ & bit) == 0 || needed_[of].at < at) {
            named_ |= bit;
            needed_[of].at = at;
            needed_[of].known = target.known.get();
        }
        return true;
    }

    /// `need` and `resolve` where this is all that the operation must come after.
    template <class Watermarks>
    [[nodiscard, gnu::always_inline]] bool need_alone(const mark& target, const Watermarks& completed) noexcept {
        const timeline_id of = target.at.timeline;
        if (of == self_) {
            return true;
        }
        if (of >= frontier::direct) [[unlikely]] {
            detail::rare();
            return false;
        }
        const epoch at = target.at.at;
        if (is_known(of, at)) {
            return true;
        }
        return add_unless_over(completed, of, {at, target.known.get()}) && can_raise_known();
    }

    /// Drops what is over, and what others imply. Once, after the last `need`.
    template <class Watermarks>
    [[nodiscard, gnu::always_inline]] bool resolve(const Watermarks& completed) noexcept {
        if (named_ == 0) {
            return true;
        }
        if ((named_ & (named_ - 1)) == 0) {
            return resolve_one(completed, static_cast<timeline_id>(std::countr_zero(named_))) && can_raise_known();
        }
        return resolve_named(completed);
    }

    /// The waits to issue: none implies another, none is implied by what the stream is ordered after. Their reasons mean nothing.
    [[nodiscard]] std::span<const wait> waits() const noexcept { return {waits_.data(), count_}; }

    /// Makes the clock of an operation that issues the waits, of which there are some, unless the stream's own can be raised:
    /// `is_sole`, and it has room. Throws std::bad_alloc.
    void prepare(bool is_sole) {
        is_in_place_ = is_sole && count_ == 1 && known_->has_places_for(waits_[0].target.known, waits_[0].target.at);
        if (!is_sole) {
            prepared_ = clock_after();
        } else if (!is_in_place_) {
            prepare_to_raise();
        }
    }
    /// Has `known`, which is the stream's clock, become that one, or raises it.
    void advance(clock& known) noexcept {
        if (is_in_place_) {
            known.sole().merge_in_place(waits_[0].target.known, waits_[0].target.at);
        } else if (prepared_) {
            known = std::move(prepared_);
        } else {
            raise_by_all(known.sole());
        }
    }

    /// What the stream is ordered after once it has issued the waits, of which there are some. Throws std::bad_alloc.
    [[nodiscard, gnu::hot]] clock clock_after() const {
        const timeline_id strides = strides_of_waits();
        auto merged =
            shared_frontier::with_room_for(known_ == nullptr ? strides : std::max(strides, known_->strides()));
        if (known_ != nullptr) {
            merged->take_first(*known_);
        }
        raise(*merged, waits());
        return clock(std::move(merged));
    }

    /// Raises a clock by what who issues these waits is ordered after, targets and clocks of the first timelines alone.
    static void raise(shared_frontier& raised, std::span<const wait> waits) noexcept {
        for (const wait& issued : waits) {
            if (issued.target.known != nullptr) {
                raised.merge_first(*issued.target.known);
            }
            raised.merge_first(issued.target.at);
        }
    }

private:
    /// The stream alone has its clock.
    [[gnu::noinline, gnu::hot]] void prepare_to_raise() {
        if (known_->room() < strides_of_waits()) {
            prepared_ = clock_after();
        } else if (prepared_) [[unlikely]] {  // of an operation that came to nothing
            detail::rare();
            prepared_ = nullptr;
        }
    }
    /// So many strides have the points that the waits add.
    [[nodiscard]] timeline_id strides_of_waits() const noexcept {
        timeline_id strides = 0;
        for (const wait& issued : waits()) {
            strides = std::max(strides, issued.target.at.timeline / frontier::stride + 1);
            if (issued.target.known != nullptr) {
                strides = std::max(strides, issued.target.known->strides());
            }
        }
        return strides;
    }

    /// Whether the stream is ordered after that.
    [[nodiscard, gnu::always_inline]] bool is_known(timeline_id of, epoch at) const noexcept {
        return at <= (known_ == nullptr ? 0 : known_->at_first(of));
    }

    struct need_of_one {
        epoch at = 0;
        const shared_frontier* known = nullptr;
    };

    template <class Watermarks>
    [[nodiscard, gnu::noinline, gnu::hot]] bool resolve_named(const Watermarks& completed) noexcept {
        for (std::uint64_t left = named_; left != 0; left &= left - 1) {
            if (!resolve_one(completed, static_cast<timeline_id>(std::countr_zero(left)))) [[unlikely]] {
                return false;
            }
        }
        if (count_ > 1) {
            reduce();
        }
        return can_raise_known();
    }
    template <class Watermarks>
    [[nodiscard, gnu::always_inline]] bool resolve_one(const Watermarks& completed, timeline_id of) noexcept {
        return add_unless_over(completed, of, needed_[of]);
    }
    template <class Watermarks>
    [[nodiscard, gnu::always_inline]] bool add_unless_over(const Watermarks& completed, timeline_id of,
                                                           const need_of_one& latest) noexcept {
        if (latest.at <= completed.completed(of)) {
            return true;
        }
        if (latest.known != nullptr && !latest.known->has_first_alone()) [[unlikely]] {
            return false;
        }
        waits_[count_++].target = {{of, latest.at}, latest.known};
        return true;
    }
    [[nodiscard]] bool can_raise_known() const noexcept {
        return count_ == 0 || known_ == nullptr || known_->has_first_alone();
    }
    [[gnu::noinline, gnu::hot]] void raise_by_all(shared_frontier& raised) const noexcept { raise(raised, waits()); }

    /// Coverage is transitive and has no cycles: what an implied wait implies, one that stays implies, too.
    [[gnu::noinline]] void reduce() noexcept {
        std::uint64_t implied = 0;
        for (std::size_t i = 0; i < count_; ++i) {
            const point at = waits_[i].target.at;
            for (const wait& other : waits()) {
                const shared_frontier* const theirs = other.target.known;  // which does not know its own timeline
                implied |= std::uint64_t{theirs != nullptr && theirs->at_first(at.timeline) >= at.at} << i;
            }
        }
        if (implied != 0) {
            drop(implied);
        }
    }
    void drop(std::uint64_t which) noexcept {
        std::size_t kept = 0;
        for (const wait& one : waits()) {
            if ((which & 1) == 0) {
                waits_[kept++] = one;
            }
            which >>= 1;
        }
        count_ = kept;
    }

    const shared_frontier* known_ = nullptr;
    timeline_id self_ = 0;
    std::uint64_t named_ = 0;   ///< a bit for each timeline of which something is needed
    std::size_t count_ = 0;     ///< of waits
    bool is_in_place_ = false;  ///< between `prepare` and `advance`: the stream's clock has a place for each point
    clock prepared_;            ///< the same: null if the stream's clock is raised
    static_assert(frontier::direct <= 64);
    std::array<need_of_one, frontier::direct> needed_{};  ///< as far as it is named
    std::array<wait, frontier::direct> waits_{};
};

}  // namespace weir::order
