#include "order/plan.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace weir::order {

void plan::note(point target, reason why, witness_kind kind, point witness) {
    elisions_.push_back({target, why, kind, witness});
}

void plan::need(const mark_view& target, reason why) {
    if (concerns(target.at)) {
        need_concerned(target, why);
    }
}

/// Of two waits for one timeline the later one is issued.
void plan::keep_after(wait& kept, const mark_view& target, reason why) {
    const point at = target.at;
    if (kept.target.at.at >= at.at) {
        elide(at, why, witness_kind::other_wait, kept.target.at);
    } else {
        elide(kept.target.at, kept.why, witness_kind::other_wait, at);
        kept = {target, why};
    }
}

/// Starts `merged_` with the points of `first`, if that is not null.
void plan::begin_with(const frontier_base* first) {
    merged_.emplace();
    if (first != nullptr) {
        merged_->merge(*first);
    }
}

/// Drops implied waits. What all waits know together shows which of them others imply, and is most of what the clock after them needs.
[[gnu::hot]] void plan::reduce() {
    const frontier_base* own = is_own_past_implied() ? nullptr : known_->get();
    begin_with(own);
    for (const wait& one : waits_) {
        if (one.target.known != nullptr) {
            merged_->merge(*one.target.known);
        }
    }
    // Coverage is transitive and has no cycles: what an implied wait implies, a kept wait implies, too.
    for (std::size_t i = 0; i < waits_.size();) {
        const point at = waits_[i].target.at;
        if (!merged_->covers(at)) {
            ++i;
            continue;
        }
        if (keep_evidence_) {
            const auto* const witness = std::find_if(waits_.begin(), waits_.end(), [&](const wait& other) {
                return other.target.at.timeline != at.timeline && covers(other.target, at);
            });
            elide(at, waits_[i].why, witness_kind::other_wait, witness->target.at);
        } else {
            ++elided_;
        }
        waits_.erase(&waits_[i]);
    }
}

/// The same for many waits, in a time that does not grow with the square of their number.
void plan::reduce_many() {
    // Stable: of two waits for one point, the one that was added first stays.
    std::stable_sort(waits_.begin(), waits_.end(),
                     [](const wait& a, const wait& b) { return a.target.at.timeline < b.target.at.timeline; });
    detail::small_vector<wait, 8> latest;
    frontier implied;  // what the waits' targets are ordered after
    for (const wait& one : waits_) {
        if (!latest.empty() && latest[latest.size() - 1].target.at.timeline == one.target.at.timeline) {
            keep_after(latest[latest.size() - 1], one.target, one.why);
        } else {
            latest.push_back(one);
        }
    }
    for (const wait& one : latest) {
        if (one.target.known) {
            implied.merge(*one.target.known);
        }
    }
    waits_ = {};
    for (const wait& one : latest) {
        if (!implied.covers(one.target.at)) {
            waits_.push_back(one);
        } else if (keep_evidence_) {
            const auto* const witness = std::find_if(latest.begin(), latest.end(), [&](const wait& other) {
                return other.target.at.timeline != one.target.at.timeline && covers(other.target, one.target.at);
            });
            elide(one.target.at, one.why, witness_kind::other_wait, witness->target.at);
        } else {
            ++elided_;
        }
    }
}

/// Whether the waits imply everything that the stream is ordered after so far. May return false if finding out would cost too much.
bool plan::is_own_past_implied() const noexcept {
    if (*known_ == nullptr) {
        return true;
    }
    // What is ordered after this stream's last operation knows everything that this stream knows; and once that operation is complete, so
    // is everything that it is ordered after.
    const point last{self_, tail_};
    if (waits_.size() == 1 || (*known_)->is_large()) {
        // `is_complete` comes last: its value is in another processor's cache.
        return std::any_of(waits_.begin(), waits_.end(),
                           [&](const wait& issued) { return covers(issued.target, last); }) ||
               completed_->is_complete(last);
    }
    return false;
}

[[gnu::hot]] clock plan::clock_after() {
    if (waits_.empty()) {
        return *known_;
    }
    if (!merged_) {
        const frontier_base* const first = is_own_past_implied() ? waits_[0].target.known : known_->get();
        begin_with(first);
        for (const wait& issued : waits_) {
            const frontier_base* const theirs = issued.target.known;
            if (theirs != nullptr && theirs != first) {
                merged_->merge(*theirs);
            }
        }
    }
    for (const wait& issued : waits_) {
        merged_->merge(issued.target.at);
    }
    merged_->prune_at_times([&](const point& p) { return p.timeline == self_ || completed_->is_complete(p); });
    return make_clock(std::move(*merged_));
}

}  // namespace weir::order
