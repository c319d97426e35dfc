// Shared by the unit tests of order/: watermarks that a test sets, and short ways to write marks.
#pragma once

#include <deque>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "order/mark.hpp"

namespace weir::order::test {

/// Watermarks that a test sets by hand.
class set_watermarks final : public watermarks {
public:
    [[nodiscard]] epoch completed(timeline_id timeline) const noexcept override {
        const auto found = completed_.find(timeline);
        return found == completed_.end() ? 0 : found->second;
    }
    void set(timeline_id timeline, epoch at) { completed_[timeline] = at; }

    [[nodiscard]] bool has_own_end(point p) const noexcept override { return late_.count({p.timeline, p.at}) == 0; }
    /// From now on a wait for the point covers later operations, too.
    void make_late(point p) { late_.insert({p.timeline, p.at}); }

private:
    std::map<timeline_id, epoch> completed_;
    std::set<std::pair<timeline_id, epoch>> late_;
};

/// A clock that covers `points`; null for none, as the engine writes it.
inline clock clock_of(std::initializer_list<point> points) {
    if (points.size() == 0) {
        return nullptr;
    }
    frontier made;
    for (const point& p : points) {
        made.merge(p);
    }
    return make_clock(made);
}

/// The point `at` on `timeline`, ordered after `known`. Kept for as long as plans may refer to it: to the end.
inline const mark& mark_at(timeline_id timeline, epoch at, std::initializer_list<point> known = {}) {
    static std::deque<mark> all;
    return all.emplace_back(mark{{timeline, at}, clock_of(known)});
}

}  // namespace weir::order::test
