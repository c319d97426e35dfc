#include "frontier/frontier.hpp"

#include <algorithm>

namespace weir::frontiers {

namespace {

bool before(const point& p, timeline_id timeline) { return p.timeline < timeline; }

}  // namespace

bool frontier::dominates(const frontier& other) const noexcept {
    bool all = true;
    other.for_each([&](const point& p) { all = all && covers(p); });
    return all;
}

void frontier::become_tree() {
    point_tree made;
    for (const point& p : few_) {
        made.merge(p);
    }
    many_ = std::move(made);
    few_ = {};
}

void frontier::merge(point p) {
    if (p.at == 0) {
        return;
    }
    if (is_tree()) {
        many_.merge(p);
        return;
    }
    auto* const found = std::lower_bound(few_.begin(), few_.end(), p.timeline, before);
    if (found != few_.end() && found->timeline == p.timeline) {
        found->at = std::max(found->at, p.at);
        return;
    }
    if (few_.size() == limit) {
        become_tree();
        many_.merge(p);
        return;
    }
    few_.insert(found, p);
}

void frontier::merge(const frontier& other) {
    if (other.empty()) {
        return;
    }
    if (empty()) {
        *this = other;
        return;
    }
    if (is_tree() || other.is_tree()) {
        merge_trees(other);
        return;
    }
    small merged;
    merged.reserve(few_.size() + other.few_.size());
    const auto* mine = few_.begin();
    const auto* theirs = other.few_.begin();
    while (mine != few_.end() && theirs != other.few_.end()) {
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
    merged.append(mine, few_.end());
    merged.append(theirs, other.few_.end());
    few_ = std::move(merged);
    if (few_.size() > limit) {
        become_tree();
    }
}

void frontier::merge_trees(const frontier& other) {
    if (!is_tree()) {
        become_tree();
    }
    if (other.is_tree()) {
        many_.merge(other.many_);
    } else {
        other.for_each([&](const point& p) { many_.merge(p); });
    }
    merges_ = std::max(merges_, other.merges_);
    prune_at_ = std::max(prune_at_, other.prune_at_);  // what either has learnt about how little is complete
}

}  // namespace weir::frontiers
