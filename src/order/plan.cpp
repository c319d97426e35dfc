#include "order/plan.hpp"

#include <algorithm>

namespace weir::order {

void plan::elide(point target, reason why, witness_kind kind, point witness) {
    if (keep_evidence_) {
        elisions_.push_back({target, why, kind, witness});
    }
}

void plan::add(const mark_view& target, reason why) {
    const point at = target.at;
    if (at.at == 0) {
        return;  // before everything
    }
    if (at.timeline == self_) {
        elide(at, why, witness_kind::same_stream, {self_, tail_});
        return;
    }
    if (*known_ && (*known_)->covers(at)) {
        elide(at, why, witness_kind::known, {self_, tail_});
        return;
    }
    if (completed_->is_complete(at)) {
        elide(at, why, witness_kind::complete, at);
        return;
    }
    if (waits_.size() <= few) {
        auto* const same = std::find_if(waits_.begin(), waits_.end(),
                                        [&](const wait& other) { return other.target.at.timeline == at.timeline; });
        if (same != waits_.end()) {
            keep_later(*same, target, why);
            return;
        }
    }
    waits_.push_back({target, why});
}

/// Of two waits for one timeline the later one is issued.
void plan::keep_later(wait& kept, const mark_view& target, reason why) {
    const point at = target.at;
    if (kept.target.at.at >= at.at) {
        elide(at, why, witness_kind::other_wait, kept.target.at);
    } else {
        elide(kept.target.at, kept.why, witness_kind::other_wait, at);
        kept = {target, why};
    }
}

void plan::reduce() {
    // Coverage is transitive and has no cycles, so a wait that an implied wait implies is implied by a kept one, too:
    // the order in which waits are dropped does not matter.
    for (std::size_t i = 0; i < waits_.size();) {
        const point at = waits_[i].target.at;
        const auto* const witness = std::find_if(waits_.begin(), waits_.end(), [&](const wait& other) {
            return other.target.at.timeline != at.timeline && covers(other.target, at);
        });
        if (witness == waits_.end()) {
            ++i;
            continue;
        }
        elide(at, waits_[i].why, witness_kind::other_wait, witness->target.at);
        waits_.erase(&waits_[i]);
    }
}

/// The same for many waits, in a time that grows with their number and not with its square.
void plan::reduce_many() {
    // Stable: of two waits for one point the first one named stays.
    std::stable_sort(waits_.begin(), waits_.end(),
                     [](const wait& a, const wait& b) { return a.target.at.timeline < b.target.at.timeline; });
    detail::small_vector<wait, 8> latest;
    frontier implied;  // what some wait's target is ordered after
    for (const wait& one : waits_) {
        if (!latest.empty() && latest[latest.size() - 1].target.at.timeline == one.target.at.timeline) {
            keep_later(latest[latest.size() - 1], one.target, one.why);
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
        }
    }
}

clock plan::clock_after() const {
    if (waits_.empty()) {
        return *known_;
    }
    // Whoever is ordered after this stream's last operation knows all that this stream knows; and once that operation is
    // over, so is all that it is ordered after.
    const point last{self_, tail_};
    // How far the stream is has to come from another processor: asked last.
    const bool implied =
        std::any_of(waits_.begin(), waits_.end(), [&](const wait& issued) { return covers(issued.target, last); }) ||
        completed_->is_complete(last);
    const frontier* const first = implied ? waits_[0].target.known : known_->get();
    const auto merged = first != nullptr ? std::make_shared<frontier>(*first) : std::make_shared<frontier>();
    for (const wait& issued : waits_) {
        const frontier* const theirs = issued.target.known;
        if (theirs != nullptr && theirs != first) {
            merged->merge(*theirs);
        }
        merged->merge(issued.target.at);
    }
    merged->prune_at_times([&](const point& p) { return p.timeline == self_ || completed_->is_complete(p); });
    return merged;
}

}  // namespace weir::order
