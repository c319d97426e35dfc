#include "order/plan.hpp"

#include <algorithm>

namespace weir::order {

void plan::elide(point target, reason why, witness_kind kind, point witness) {
    if (keep_evidence_) {
        elisions_.push_back({target, why, kind, witness});
    }
}

void plan::add(const mark& target, reason why) {
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
    for (wait& other : waits_) {
        if (other.target.at.timeline != at.timeline) {
            continue;
        }
        if (other.target.at.at >= at.at) {
            elide(at, why, witness_kind::other_wait, other.target.at);
        } else {
            elide(other.target.at, other.why, witness_kind::other_wait, at);
            other = {target, why};
        }
        return;
    }
    waits_.push_back({target, why});
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

clock plan::clock_after() const {
    if (waits_.empty()) {
        return *known_;
    }
    const auto merged = *known_ ? std::make_shared<frontier>(**known_) : std::make_shared<frontier>();
    for (const wait& issued : waits_) {
        if (issued.target.known) {
            merged->merge(*issued.target.known);
        }
        merged->merge(issued.target.at);
    }
    merged->prune_at_times([&](const point& p) { return p.timeline == self_ || completed_->is_complete(p); });
    return merged;
}

}  // namespace weir::order
