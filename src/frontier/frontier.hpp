// The folder frontier/ holds positions in time and sets of them. It is pure: no threads, no devices, no
// allocation beyond the vectors it holds, and it includes nothing but the standard library.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "frontier/small_vector.hpp"

namespace weir::frontiers {

/// Names one timeline (one per stream). An index that the owner of the timelines hands out; an index may be
/// handed out again once everything on its timeline is complete, and its epochs then go on where they ended,
/// so that an old point stays what it was: complete.
using timeline_id = std::uint32_t;

/// A position in a timeline. The first operation of a timeline has epoch 1; 0 is "before everything".
using epoch = std::uint64_t;

/// A position in a given timeline (DESIGN section 3, *epoch*).
struct point {
    timeline_id timeline = 0;
    epoch at = 0;

    friend bool operator==(const point&, const point&) = default;
};

/// A set of points, at most one for each timeline (rule O10). It stands for everything at or before its points:
/// a timeline that is absent is *not* covered.
///
/// Kept as a vector sorted by timeline: merging and comparing two frontiers is one linear pass.
class frontier {
public:
    frontier() = default;

    /// The epoch covered on `timeline`; 0 if none.
    [[nodiscard]] epoch at(timeline_id timeline) const noexcept;

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
        points_.erase(std::remove_if(points_.begin(), points_.end(), [&](const point& p) { return complete(p); }),
                      points_.end());
    }

    [[nodiscard]] bool empty() const noexcept { return points_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return points_.size(); }
    [[nodiscard]] std::span<const point> points() const noexcept { return points_; }

    friend bool operator==(const frontier&, const frontier&) = default;

private:
    detail::small_vector<point, 8> points_;
};

}  // namespace weir::frontiers
