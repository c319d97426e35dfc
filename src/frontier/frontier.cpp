#include "frontier/frontier.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace weir::frontiers {

namespace {

bool before(const point& p, timeline_id timeline) { return p.timeline < timeline; }

}  // namespace

bool frontier_base::dominates(const frontier_base& other) const noexcept {
    bool all = true;
    other.for_each([&](const point& p) { all = all && covers(p); });
    return all;
}

void frontier_base::merge_other(point p) {
    if (p.at == 0) {
        return;
    }
    if (others_ != nullptr) {
        others_->merge(p);
        return;
    }
    auto made = std::make_unique<others>();
    made->merge(p);
    others_ = std::move(made);
}

void frontier_base::merge_others(const others& theirs) {
    if (others_ != nullptr) {
        others_->merge(theirs);
    } else {
        others_ = std::make_unique<others>(theirs);
    }
}

void frontier_base::others::become_tree() {
    point_tree made;
    for (const point& p : few) {
        made.merge(p);
    }
    many = std::move(made);
    few = {};
}

void frontier_base::others::merge(point p) {
    if (is_tree()) {
        many.merge(p);
        return;
    }
    auto* const found = std::find_if_not(few.begin(), few.end(), [&](const point& q) { return before(q, p.timeline); });
    if (found != few.end() && found->timeline == p.timeline) {
        found->at = std::max(found->at, p.at);
        return;
    }
    if (few.size() == limit) {
        become_tree();
        many.merge(p);
        return;
    }
    few.insert(found, p);
}

namespace {

bool name_the_same(const point* a, const point* b, std::size_t count) noexcept {
    std::uint32_t differences = 0;
    for (std::size_t i = 0; i < count; ++i) {
        differences |= a[i].timeline ^ b[i].timeline;
    }
    return differences == 0;
}

}  // namespace

/// In place: usually this set already has all timelines that `other` has, and most often no others.
void frontier_base::others::merge_few(const small& other) {
    if (few.size() == other.size() && name_the_same(few.begin(), other.begin(), other.size())) {
        point* mine = few.begin();
        for (const point& theirs : other) {
            mine->at = std::max(mine->at, theirs.at);
            ++mine;
        }
        return;
    }
    point* mine = few.begin();
    const point* const end = few.end();
    const point* theirs = other.begin();
    const point* const their_end = other.end();
    for (; theirs != their_end; ++theirs, ++mine) {
        while (mine != end && before(*mine, theirs->timeline)) {
            ++mine;
        }
        if (mine == end || mine->timeline != theirs->timeline) {
            break;
        }
        mine->at = std::max(mine->at, theirs->at);
    }
    if (theirs == their_end) {
        return;
    }
    const small rest(mine, end);
    const std::size_t kept = few.size() - rest.size();
    few.reserve(few.size() + static_cast<std::size_t>(their_end - theirs));  // first, because it may throw
    few.erase(few.begin() + kept, few.end());
    const point* next = rest.begin();
    while (next != rest.end() && theirs != their_end) {
        if (next->timeline == theirs->timeline) {
            few.push_back({next->timeline, std::max(next->at, theirs->at)});
            ++next;
            ++theirs;
        } else {
            few.push_back(before(*next, theirs->timeline) ? *next++ : *theirs++);
        }
    }
    few.append(next, rest.end());
    few.append(theirs, their_end);
}

void frontier_base::others::merge(const others& other) {
    if (is_tree() || other.is_tree()) {
        merge_trees(other);
    } else {
        merge_few(other.few);
        if (few.size() > limit) {
            become_tree();
        }
    }
}

void frontier_base::others::merge_trees(const others& other) {
    if (!is_tree()) {
        become_tree();
    }
    if (other.is_tree()) {
        many.merge(other.many);
    } else {
        for (const point& p : other.few) {
            many.merge(p);
        }
    }
    merges = std::max(merges, other.merges);
    prune_at =
        std::max(prune_at, other.prune_at);  // the longer interval: one of the two has found that pruning drops little
}

}  // namespace weir::frontiers
