#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "frontier/frontier.hpp"
#include "frontier/point.hpp"
#include "frontier/small_vector.hpp"
#include "order/mark.hpp"
#include "order/plan.hpp"

namespace weir::order {

/// Finds the same waits as `plan`, for an operation that must come after accesses on the first timelines alone (those below
/// frontier::direct), as most programs have no others. There each timeline has a place of its own: nothing is searched for,
/// nothing is allocated. It keeps no evidence and no reasons, so it is not for operations that somebody is told of.
///
/// Use: `need` for each access, then `resolve`, then read `waits`. An answer of false means that this plan cannot tell: begin
/// anew with a `plan`. Refers to the clocks of what it is told, as `plan` does.
class short_plan {
public:
    /// As of `plan`.
    short_plan(timeline_id self, const clock& known) noexcept : known_(known.get()), self_(self) {}

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
        if (at <= (known_ == nullptr ? 0 : known_->at_first(of))) {
            return true;
        }
        const std::uint32_t bit = std::uint32_t{1} << of;
        if ((named_ & bit) == 0 || needed_[of] < at) {
            named_ |= bit;
            needed_[of] = at;
            clocks_[of] = target.known.get();
        }
        return true;
    }

    /// Drops what is over, and what others imply. Once, after the last `need`.
    template <class Watermarks>
    [[nodiscard]] bool resolve(const Watermarks& completed) noexcept {
        for (std::uint32_t left = named_; left != 0; left &= left - 1) {
            const auto of = static_cast<timeline_id>(std::countr_zero(left));
            const point at{of, needed_[of]};
            if (completed.is_complete(at)) {
                continue;
            }
            if (clocks_[of] != nullptr && !clocks_[of]->has_first_alone()) [[unlikely]] {
                return false;
            }
            waits_.push_back({{at, clocks_[of]}});
        }
        if (waits_.size() > 1) {
            reduce();
        }
        return waits_.empty() || known_ == nullptr || known_->has_first_alone();
    }

    /// The waits to issue: none implies another, none is implied by what the stream is ordered after. Their reasons mean nothing.
    [[nodiscard]] std::span<const wait> waits() const noexcept { return waits_; }

    /// What the stream is ordered after once it has issued the waits, of which there are some. Throws std::bad_alloc.
    [[nodiscard]] clock clock_after() const {
        auto merged = known_ == nullptr ? std::make_unique<shared_frontier>() : std::make_unique<shared_frontier>(static_cast<const frontier&>(*known_));
        raise(*merged, waits());
        return clock(std::move(merged));
    }

    /// Raises a clock by what who issues these waits is ordered after, targets and clocks of the first timelines alone.
    static void raise(shared_frontier& raised, std::span<const wait> waits) noexcept {
        for (const wait& issued : waits) {
            if (issued.target.known != nullptr) {
                raised.merge(*issued.target.known);
            }
            raised.merge(issued.target.at);
        }
    }

private:
    /// Coverage is transitive and has no cycles: what an implied wait implies, one that stays implies, too.
    void reduce() noexcept {
        std::uint32_t implied = 0;
        for (std::size_t i = 0; i < waits_.size(); ++i) {
            const point at = waits_[i].target.at;
            for (const wait& other : waits_) {
                const shared_frontier* const theirs = other.target.known;  // which does not know its own timeline
                implied |= std::uint32_t{theirs != nullptr && theirs->at_first(at.timeline) >= at.at} << i;
            }
        }
        if (implied != 0) {
            drop(implied);
        }
    }
    void drop(std::uint32_t which) noexcept {
        wait* kept = waits_.begin();
        for (const wait& one : waits_) {
            if ((which & 1) == 0) {
                *kept++ = one;
            }
            which >>= 1;
        }
        waits_.erase(kept, waits_.end());
    }

    const shared_frontier* known_;
    timeline_id self_;
    std::uint32_t named_ = 0;                                         ///< a bit for each timeline of which something is needed
    std::array<epoch, frontier::direct> needed_;                      // filled as far as it is named
    std::array<const shared_frontier*, frontier::direct> clocks_;     // of those
    detail::small_vector<wait, frontier::direct> waits_;
};

}  // namespace weir::order
