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
#include "order/wait_counts.hpp"
#include "weir/detail/rare.hpp"

namespace weir::order {

/// Finds the same waits as `plan`, for an operation that must come after accesses on the first timelines only (those below
/// frontier::direct); most programs have no others. Each of these timelines has a fixed place: nothing is searched for, nothing is
/// allocated. It keeps neither evidence nor reasons, so it cannot plan operations that observers see.
///
/// Use: `need` for each access, then `resolve`, then read `waits`. If `need` or `resolve` returns false, this plan does not support the
/// operation: use a `plan`. Refers to the clocks of the marks that are passed in, as `plan` does.
class short_plan {
public:
    short_plan() = default;
    /// As the constructor of `plan`.
    short_plan(timeline_id self, const clock& known) noexcept { begin(self, known); }
    /// Starts a new plan, and uses the places of the earlier one again.
    void begin(timeline_id self, const clock& known) noexcept {
        known_ = known.get();
        self_ = self;
        named_ = 0;
        count_ = 0;
    }

    /// The timeline of the operation.
    [[nodiscard]] timeline_id self() const noexcept { return self_; }

    /// Of all plans that were made here, and of those that the stream's slow path has added. They share a cache line with what a plan
    /// changes in any case. If the slow path takes over from this plan, an elision may be counted twice.
    wait_counts counts;

    /// Adds the requirement that the operation comes after `target`.
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
            ++counts.elided;
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

    /// `need` and `resolve` in one, for an operation that must come after `target` alone.
    template <class Watermarks>
    [[nodiscard, gnu::always_inline]] bool need_alone(const mark& target, const Watermarks& completed) noexcept {
        const timeline_id of = target.at.timeline;
        if (of == self_) {
            return true;
        }
        if (of >= frontier::direct) [[unlikely]] {
            detail::cold_path();
            return false;
        }
        const epoch at = target.at.at;
        if (is_known(of, at)) {
            ++counts.elided;
            return true;
        }
        return add_unless_over(completed, of, {at, target.known.get()}) && can_raise_known();
    }

    /// Drops waits for complete points, and waits that other waits imply. Call once, after the last `need`.
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

    /// The waits to issue: none implies another, and what the stream is ordered after implies none. Their reasons are not set.
    [[nodiscard]] std::span<const wait> waits() const noexcept { return {waits_.data(), count_}; }

    /// Makes the clock of an operation that issues the waits, unless the stream's own clock can be raised in place: `is_sole` (nothing
    /// else refers to that clock), and it has room. There must be waits. Throws std::bad_alloc.
    void prepare(bool is_sole) {
        is_in_place_ = is_sole && count_ == 1 && known_->has_places_for(waits_[0].target.known, waits_[0].target.at);
        if (!is_sole) {
            prepared_ = clock_after();
        } else if (!is_in_place_) {
            prepare_to_raise();
        }
    }
    /// Replaces `known`, the stream's clock, by the prepared clock, or raises it in place.
    void advance(clock& known) noexcept {
        counts.issued += count_;
        if (is_in_place_) {
            known.sole().merge_in_place(waits_[0].target.known, waits_[0].target.at);
        } else if (prepared_) {
            known = std::move(prepared_);
        } else {
            raise_by_all(known.sole());
        }
    }

    /// What the stream is ordered after once it has issued the waits. There must be waits. Throws std::bad_alloc.
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

    /// Raises a clock by what the waits order the stream after: their targets and their targets' clocks, on the first timelines only.
    static void raise(shared_frontier& raised, std::span<const wait> waits) noexcept {
        for (const wait& issued : waits) {
            if (issued.target.known != nullptr) {
                raised.merge_first(*issued.target.known);
            }
            raised.merge_first(issued.target.at);
        }
    }

private:
    /// Only the stream refers to its clock.
    [[gnu::noinline, gnu::hot]] void prepare_to_raise() {
        if (known_->room() < strides_of_waits()) {
            prepared_ = clock_after();
        } else if (prepared_) [[unlikely]] {  // left by an operation that was not committed
            detail::cold_path();
            prepared_ = nullptr;
        }
    }
    /// The number of strides that hold the points which the waits add.
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

    /// Whether the stream is ordered after that point.
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
            ++counts.elided;
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

    /// Drops implied waits. Coverage is transitive and has no cycles: what an implied wait implies, a wait that stays implies, too.
    [[gnu::noinline]] void reduce() noexcept {
        std::uint64_t implied = 0;
        for (std::size_t i = 0; i < count_; ++i) {
            const point at = waits_[i].target.at;
            for (const wait& other : waits()) {
                const shared_frontier* const theirs = other.target.known;  // does not include its own timeline
                implied |= std::uint64_t{theirs != nullptr && theirs->at_first(at.timeline) >= at.at} << i;
            }
        }
        if (implied != 0) {
            counts.elided += static_cast<std::uint64_t>(std::popcount(implied));
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
    std::uint64_t named_ = 0;   ///< a bit for each timeline on which something is needed
    std::size_t count_ = 0;     ///< number of waits
    bool is_in_place_ = false;  ///< between `prepare` and `advance`: the stream's clock has a place for each point
    clock prepared_;  ///< between `prepare` and `advance`: the new clock; null if the stream's clock is raised
    static_assert(frontier::direct <= 64);
    std::array<need_of_one, frontier::direct> needed_{};  ///< valid for the timelines in `named_`
    std::array<wait, frontier::direct> waits_{};
};

}  // namespace weir::order
