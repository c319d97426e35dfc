#include "order/history.hpp"

#include <algorithm>

namespace weir::order {

reason history::why(const past_access& past, access_mode mode) noexcept {
    if (past.former_owner) {
        return reason::reuse;
    }
    if (past.by == accessor::package) {
        return reason::entry;
    }
    if (mode == access_mode::read) {
        return reason::read_after_write;
    }
    return past.mode == access_mode::write ? reason::write_after_write : reason::write_after_read;
}

void history::require(plan& into, const footprint& where, access_mode mode, bool hazards) const {
    conflicts(where, mode, [&](const past_access& past, reason because) {
        if (hazards || past.former_owner) {
            into.need(past.when, because);
        }
    });
}

void history::record(const footprint& where, access_mode mode, const mark& when, const watermarks& completed,
                     accessor by) noexcept {
    if (where.empty()) {
        return;
    }
    const auto forgotten = [&](const past_access& past) {
        const bool same_kind = mode == access_mode::write || past.mode == access_mode::read;
        const bool ordered = !past.former_owner && weir::order::covers(when, past.when.at);
        return same_kind && weir::order::covers(where, past.where) && (ordered || completed.is_complete(past.when.at));
    };
    // The first access that is covered is overwritten in place: with one stream, or one writer, nothing ever moves.
    auto slot = accesses_.begin();
    while (slot != accesses_.end() && !forgotten(*slot)) {
        ++slot;
    }
    if (slot == accesses_.end()) {
        if (accesses_.size() >= bound) {
            prune(completed);
        }
        const past_access added{where, when, mode, false, by};
        if (accesses_.size() < bound || !merge(added)) {
            accesses_.push_back(added);
        }
        return;
    }
    if (slot + 1 != accesses_.end()) {
        accesses_.erase(std::remove_if(slot + 1, accesses_.end(), forgotten), accesses_.end());
    }
    slot->where = where;
    slot->mode = mode;
    slot->former_owner = false;
    slot->by = by;
    slot->when.at = when.at;
    if (slot->when.known != when.known) {
        slot->when.known = when.known;
    }
}

void history::prune(const watermarks& completed) noexcept {
    std::erase_if(accesses_, [&](const past_access& past) { return completed.is_complete(past.when.at); });
}

// Puts `added` into an access of the same timeline: the hull of both, at the later point, whose clock includes the
// earlier one's; a write if one was. Later accesses may wait for more than they need, never for less. One pass, so that
// many timelines on one piece of memory stay cheap. False if the timeline has no access here yet.
bool history::merge(const past_access& added) noexcept {
    const auto same = std::find_if(accesses_.begin(), accesses_.end(), [&](const past_access& past) {
        return past.when.at.timeline == added.when.at.timeline && !past.former_owner;
    });
    if (same == accesses_.end()) {
        return false;
    }
    same->where = hull(same->where, added.where);
    if (added.mode == access_mode::write) {
        same->mode = access_mode::write;
    }
    if (same->when.at.at < added.when.at.at) {
        same->when = added.when;
    }
    return true;
}

void history::die(std::uint64_t size, const watermarks& completed) noexcept {
    prune(completed);
    for (std::size_t i = 0; i < accesses_.size();) {
        const point at = accesses_[i].when.at;
        bool implied = false;
        for (std::size_t j = 0; j < accesses_.size() && !implied; ++j) {
            implied = j != i && weir::order::covers(accesses_[j].when, at);
        }
        if (implied) {  // dropped at once, so that of two accesses at the same point one stays
            accesses_.erase(accesses_.begin() + static_cast<std::ptrdiff_t>(i));
            continue;
        }
        accesses_[i].where = {0, size};
        accesses_[i].mode = access_mode::write;
        accesses_[i].former_owner = true;
        ++i;
    }
}

void history::merge_death(const history& other, std::uint64_t size, const watermarks& completed) {
    accesses_.insert(accesses_.end(), other.accesses_.begin(), other.accesses_.end());
    die(size, completed);
}

}  // namespace weir::order
