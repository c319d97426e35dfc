#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "frontier/point.hpp"
#include "frontier/point_tree.hpp"
#include "frontier/small_vector.hpp"

namespace weir::frontiers {

/// A set of points, at most one for each timeline (rule O10). It stands for everything at or before its points:
/// a timeline that is absent is *not* covered.
///
/// The first timelines have their points each in a place of its own, as most programs have no others: merging and asking take
/// the same few steps, whatever is in the set. The other points are kept as a vector sorted by timeline while there are few,
/// so that merging and comparing is one linear pass; many as a tree that shares its parts with the copies of the frontier.
class frontier {
public:
    /// The timelines below this are the first ones.
    static constexpr timeline_id direct = 16;
    /// As many points of other timelines take no memory beyond the frontier's own.
    static constexpr std::size_t in_place = 8;

    frontier() = default;

    /// The epoch covered on `timeline`; 0 if none.
    [[nodiscard]] epoch at(timeline_id timeline) const noexcept {
        if (timeline < direct) {
            return first_[timeline];
        }
        if (is_tree()) {
            return many_.at(timeline);
        }
        for (const point& p : few_) {
            if (p.timeline >= timeline) {
                return p.timeline == timeline ? p.at : 0;
            }
        }
        return 0;
    }

    /// The same for one of the first timelines.
    [[nodiscard]] epoch at_first(timeline_id timeline) const noexcept { return first_[timeline]; }

    /// Whether `p` is at or before this frontier.
    [[nodiscard]] bool covers(point p) const noexcept { return p.at <= at(p.timeline); }

    /// Whether every point of `other` is at or before this frontier.
    [[nodiscard]] bool dominates(const frontier& other) const noexcept;

    /// Raises this frontier to cover `p`. Keeps the larger of two epochs. May throw std::bad_alloc.
    void merge(point p) {
        if (p.timeline < direct) {
            merge_first(p);
        } else {
            merge_other(p);
        }
    }

    /// Raises this frontier to cover everything that `other` covers. Keeps the larger of two epochs, each. May throw
    /// std::bad_alloc.
    void merge(const frontier& other) {
        if (other.has_others()) {
            merge_others(other);
        }
        merge_first(other);
    }

    /// @{
    /// The same for what has points of the first timelines alone. Needs no memory.
    void merge_first(point p) noexcept {
        first_[p.timeline] = std::max(first_[p.timeline], p.at);
        first_used_ = std::max(first_used_, p.timeline / stride + 1);
    }
    void merge_first(const frontier& other) noexcept {
        first_used_ = std::max(first_used_, other.first_used_);
        const std::size_t end = std::size_t{other.first_used_} * stride;
        for (std::size_t i = 0; i < end; ++i) {
            raise(first_[i], other.first_[i]);
        }
    }
    /// @}

    /// Becomes, of an empty one, what several frontiers together cover, all of which have points of the first timelines alone.
    void become(std::span<const frontier* const> of) noexcept {
        timeline_id used = 0;
        for (const frontier* const one : of) {
            used = std::max(used, one->first_used_);
        }
        for (timeline_id i = 0; i < used * stride; i += stride) {
            epoch a = 0, b = 0, c = 0, d = 0;
            for (const frontier* const one : of) {
                raise(a, one->first_[i]);
                raise(b, one->first_[i + 1]);
                raise(c, one->first_[i + 2]);
                raise(d, one->first_[i + 3]);
            }
            first_[i] = a;
            first_[i + 1] = b;
            first_[i + 2] = c;
            first_[i + 3] = d;
        }
        first_used_ = used;
    }

    /// Drops every point for which `complete(point)` holds: what is complete counts as ordered (rule O10).
    template <class Complete>
    void prune(Complete&& complete) {
        for (timeline_id i = 0; i < direct; ++i) {
            first_[i] = first_[i] != 0 && complete(point{i, first_[i]}) ? 0 : first_[i];
        }
        if (is_tree()) {
            frontier kept;
            many_.for_each([&](const point& p) {
                if (!complete(p)) {
                    kept.merge(p);
                }
            });
            kept.first_used_ = first_used_;
            kept.first_ = first_;
            *this = std::move(kept);
        } else {
            few_.erase(std::remove_if(few_.begin(), few_.end(), [&](const point& p) { return complete(p); }),
                       few_.end());
        }
    }

    /// The same, but only where it pays: not while it is small, and, where few of many turned out to be
    /// complete, only now and then. So frontiers stay small where work gets over, and where it does not, looking at all points
    /// costs each merge little.
    template <class Complete>
    void prune_at_times(Complete&& complete) {
        if (!is_large() || ++merges_ < prune_at_) {
            return;
        }
        const std::size_t interval = prune_at_;
        const std::size_t before = size();
        prune(complete);
        const bool was_worth_it = size() <= before - before / 4;
        merges_ = 0;
        prune_at_ = was_worth_it ? 1 : static_cast<std::uint32_t>(std::min(2 * interval, merges_for_each * size()));
    }

    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
    [[nodiscard]] std::size_t size() const noexcept {
        const auto first = direct - std::count(first_.begin(), first_.end(), epoch{0});
        return static_cast<std::size_t>(first) + (is_tree() ? many_.size() : few_.size());
    }
    /// Whether it has points of the first timelines alone: to merge such ones needs no memory.
    [[nodiscard]] bool has_first_alone() const noexcept { return !has_others(); }
    /// Whether merging, copying and asking take longer, the more points there are.
    [[nodiscard]] bool is_large() const noexcept { return is_tree() || few_.size() > in_place; }

    /// Calls `visit(point)` for each, in the order of their timelines.
    template <class Visit>
    void for_each(Visit&& visit) const {
        for (timeline_id i = 0; i < direct; ++i) {
            if (first_[i] != 0) {
                visit(point{i, first_[i]});
            }
        }
        std::for_each(few_.begin(), few_.end(), visit);
        many_.for_each(visit);
    }

    friend bool operator==(const frontier& a, const frontier& b) noexcept {
        return a.size() == b.size() && a.dominates(b) && b.dominates(a);
    }

private:
    using small = detail::small_vector<point, in_place>;
    static constexpr timeline_id stride = 4;  ///< so many first timelines are looked at together
    static constexpr std::size_t limit = 32;  ///< more other points make a tree
    static constexpr std::size_t merges_for_each = 4;

    static_assert(stride == 4, "merge names each of them");
    static void raise(epoch& mine, epoch theirs) noexcept { mine = mine < theirs ? theirs : mine; }
    [[nodiscard]] bool is_tree() const noexcept { return !many_.empty(); }
    [[nodiscard]] bool has_others() const noexcept { return !few_.empty() || is_tree(); }
    void become_tree();
    void merge_other(point p);
    void merge_others(const frontier& other);
    void merge_few(const small& other);
    void merge_trees(const frontier& other);

    // What is used of every frontier lies together.
    timeline_id first_used_ = 0;         ///< strides of the first timelines in which there may be a point
    std::uint32_t merges_ = 0;           ///< since what is large was pruned
    std::uint32_t prune_at_ = 1;         ///< so many merges
    std::array<epoch, direct> first_{};  ///< of the first timelines; 0: none
    point_tree many_;                    ///< all others, or none
    small few_;                          ///< the same
};

}  // namespace weir::frontiers
