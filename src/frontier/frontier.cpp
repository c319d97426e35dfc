#include "frontier/frontier.hpp"

#include <algorithm>

namespace weir::frontiers {

namespace {

bool before(const point& p, timeline_id timeline) { return p.timeline < timeline; }

}  // namespace

epoch frontier::at(timeline_id timeline) const noexcept {
    const auto* const found = std::lower_bound(points_.begin(), points_.end(), timeline, before);
    return found != points_.end() && found->timeline == timeline ? found->at : 0;
}

bool frontier::dominates(const frontier& other) const noexcept {
    const auto* mine = points_.begin();
    for (const point& theirs : other.points_) {
        while (mine != points_.end() && mine->timeline < theirs.timeline) {
            ++mine;
        }
        if (mine == points_.end() || mine->timeline != theirs.timeline || mine->at < theirs.at) {
            return false;
        }
    }
    return true;
}

void frontier::merge(point p) {
    if (p.at == 0) {
        return;
    }
    auto* const found = std::lower_bound(points_.begin(), points_.end(), p.timeline, before);
    if (found != points_.end() && found->timeline == p.timeline) {
        found->at = std::max(found->at, p.at);
    } else {
        points_.insert(found, p);
    }
}

void frontier::merge(const frontier& other) {
    if (other.empty()) {
        return;
    }
    if (points_.empty()) {
        points_ = other.points_;
        return;
    }
    detail::small_vector<point, 8> merged;
    merged.reserve(points_.size() + other.points_.size());
    const auto* mine = points_.begin();
    const auto* theirs = other.points_.begin();
    while (mine != points_.end() && theirs != other.points_.end()) {
        if (mine->timeline < theirs->timeline) {
            merged.push_back(*mine++);
        } else if (theirs->timeline < mine->timeline) {
            merged.push_back(*theirs++);
        } else {
            merged.push_back({mine->timeline, std::max(mine->at, theirs->at)});
            ++mine;
            ++theirs;
        }
    }
    merged.append(mine, points_.end());
    merged.append(theirs, other.points_.end());
    points_ = std::move(merged);
}

}  // namespace weir::frontiers
