#include "frontier/frontier.hpp"

#include <algorithm>
#include <span>
#include <utility>

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

/// In place, since as a rule both name the same timelines, or at least begin with the same.
void frontier::merge_few(const small& other) {
    point* same = few_.begin();
    const point* rest = other.begin();
    for (; same != few_.end() && rest != other.end() && same->timeline == rest->timeline; ++same, ++rest) {
        same->at = std::max(same->at, rest->at);
    }
    if (rest == other.end()) {
        return;
    }
    std::size_t missing = 0;
    const point* mine = same;
    for (const point& theirs : std::span(rest, other.end())) {
        mine =
            std::find_if(mine, std::as_const(few_).end(), [&](const point& p) { return !before(p, theirs.timeline); });
        missing += mine == few_.end() || mine->timeline != theirs.timeline ? 1U : 0U;
    }
    few_.reserve(few_.size() + missing);
    const point* from = few_.end();
    for (; missing > 0; --missing) {
        few_.push_back({});
    }
    // From behind: what is there moves up by as much as is still to be put before it.
    point* to = few_.end();
    for (const point* theirs = other.end(); theirs != other.begin();) {
        if (from == few_.begin() || from[-1].timeline < theirs[-1].timeline) {
            *--to = *--theirs;
        } else if (theirs[-1].timeline < from[-1].timeline) {
            *--to = *--from;
        } else {
            --from;
            --theirs;
            *--to = {from->timeline, std::max(from->at, theirs->at)};
        }
    }
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
    merge_few(other.few_);
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
