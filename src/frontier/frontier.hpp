#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "frontier/point.hpp"
#include "frontier/point_tree.hpp"
#include "frontier/small_vector.hpp"

namespace weir::frontiers {

/// A set of points, at most one for each timeline (rule O10). It stands for everything at or before its points:
/// a timeline that is absent is *not* covered.
///
/// Kept as a vector sorted by timeline while there are few points: merging and comparing two frontiers is one linear pass.
/// Many are kept as a tree that shares its parts with the copies of the frontier.
class frontier {
public:
    /// As many points take no memory beyond the frontier's own.
    static constexpr std::size_t in_place = 8;

    frontier() = default;

    /// The epoch covered on `timeline`; 0 if none.
    [[nodiscard]] epoch at(timeline_id timeline) const noexcept {
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

    /// Whether `p` is at or before this frontier.
    [[nodiscard]] bool covers(point p) const noexcept { return p.at <= at(p.timeline); }

    /// Whether every point of `other` is at or before this frontier.
    [[nodiscard]] bool dominates(const frontier& other) const noexcept;

    /// Raises this frontier to cover `p`. Keeps the larger of two epochs.
    void merge(point p);

    /// Raises this frontier to cover everything that `other` covers. Keeps the larger of two epochs, each.
    void merge(const frontier& other);

    /// Drops every point for which `complete(point)` holds: what is complete counts as ordered (rule O10).
    template <class Complete>
    void prune(Complete&& complete) {
        if (is_tree()) {
            keep_points([&](const point& p) { return !complete(p); });
        } else {
            few_.erase(std::remove_if(few_.begin(), few_.end(), [&](const point& p) { return complete(p); }),
                       few_.end());
        }
    }

    /// The same, but only where it pays: not while the points have room in place, and, where few of many turned out to be
    /// complete, only now and then. So frontiers stay small where work gets over, and where it does not, looking at all points
    /// costs each merge little.
    template <class Complete>
    void prune_at_times(Complete&& complete) {
        if ((!is_tree() && few_.size() <= in_place) || ++merges_ < prune_at_) {
            return;
        }
        const std::size_t interval = prune_at_;
        const std::size_t before = size();
        prune(complete);
        const bool was_worth_it = size() <= before - before / 4;
        merges_ = 0;
        prune_at_ = was_worth_it ? 1 : static_cast<std::uint32_t>(std::min(2 * interval, merges_for_each * size()));
    }

    [[nodiscard]] bool empty() const noexcept { return few_.empty() && !is_tree(); }
    [[nodiscard]] std::size_t size() const noexcept { return is_tree() ? many_.size() : few_.size(); }

    /// Calls `visit(point)` for each, in the order of their timelines.
    template <class Visit>
    void for_each(Visit&& visit) const {
        std::for_each(few_.begin(), few_.end(), visit);
        many_.for_each(visit);
    }

    friend bool operator==(const frontier& a, const frontier& b) noexcept {
        return a.size() == b.size() && a.dominates(b) && b.dominates(a);
    }

private:
    using small = detail::small_vector<point, in_place>;
    static constexpr std::size_t limit = 32;  ///< more points make a tree
    static constexpr std::size_t merges_for_each = 4;

    [[nodiscard]] bool is_tree() const noexcept { return !many_.empty(); }
    void become_tree();
    void merge_few(const small& other);
    void merge_trees(const frontier& other);

    template <class Keep>
    void keep_points(Keep&& keep) {
        frontier kept;
        for_each([&](const point& p) {
            if (keep(p)) {
                kept.merge(p);
            }
        });
        *this = std::move(kept);
    }

    small few_;  ///< all points, or none
    point_tree many_;
    std::uint32_t merges_ = 0;    ///< since a tree was pruned
    std::uint32_t prune_at_ = 1;  ///< so many merges
};

}  // namespace weir::frontiers
