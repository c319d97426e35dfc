#include "frontier/frontier.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

void frontier::merge_other(point p) {
    if (p.at == 0) {
        return;
    }
    has_others_ = true;
    if (is_tree()) {
        many_.merge(p);
        return;
    }
    auto* const found =
        std::find_if_not(few_.begin(), few_.end(), [&](const point& q) { return before(q, p.timeline); });
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

namespace {

bool name_the_same(const point* a, const point* b, std::size_t count) noexcept {
    std::uint32_t differences = 0;
    for (std::size_t i = 0; i < count; ++i) {
        differences |= a[i].timeline ^ b[i].timeline;
    }
    return differences == 0;
}

}  // namespace

/// In place, since as a rule all timelines that `other` names are there, and most often no others.
void frontier::merge_few(const small& other) {
    if (few_.size() == other.size() && name_the_same(few_.begin(), other.begin(), other.size())) {
        point* mine = few_.begin();
        for (const point& theirs : other) {
            mine->at = std::max(mine->at, theirs.at);
            ++mine;
        }
        return;
    }
    point* mine = few_.begin();
    const point* const end = few_.end();
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
    const std::size_t kept = few_.size() - rest.size();
    few_.reserve(few_.size() +
                 static_cast<std::size_t>(their_end - theirs));  // before anything is taken out: it may throw
    few_.erase(few_.begin() + kept, few_.end());
    const point* next = rest.begin();
    while (next != rest.end() && theirs != their_end) {
        if (next->timeline == theirs->timeline) {
            few_.push_back({next->timeline, std::max(next->at, theirs->at)});
            ++next;
            ++theirs;
        } else {
            few_.push_back(before(*next, theirs->timeline) ? *next++ : *theirs++);
        }
    }
    few_.append(next, rest.end());
    few_.append(theirs, their_end);
}

void frontier::merge_others(const frontier& other) {
    if (!std::exchange(has_others_, true)) {
        few_ = other.few_;
        many_ = other.many_;
        merges_ = other.merges_;
        prune_at_ = other.prune_at_;
    } else if (is_tree() || other.is_tree()) {
        merge_trees(other);
    } else {
        merge_few(other.few_);
        if (few_.size() > limit) {
            become_tree();
        }
    }
}

void frontier::merge_trees(const frontier& other) {
    if (!is_tree()) {
        become_tree();
    }
    if (other.is_tree()) {
        many_.merge(other.many_);
    } else {
        for (const point& p : other.few_) {
            many_.merge(p);
        }
    }
    merges_ = std::max(merges_, other.merges_);
    prune_at_ = std::max(prune_at_, other.prune_at_);  // what either has learnt about how little is complete
}

}  // namespace weir::frontiers
