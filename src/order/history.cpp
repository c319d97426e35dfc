#include "order/history.hpp"

#include <algorithm>
#include <new>
#include <utility>

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

[[gnu::hot, gnu::flatten]] void history::require(plan& into, const footprint& where, access_mode mode,
                                                 bool hazards) const {
    conflicts_among(
        [&](const past_access& past) {
            return (hazards || is_always_ordered(past, mode)) && into.concerns(past.when.at);
        },
        where, mode, [&](const past_access& past, reason because) { into.need_concerned(past.when, because); });
}

/// Records one of few reads: it replaces an earlier read of its timeline that it covers, or is added.
[[gnu::hot]] void history::record_read(const footprint& where, mark&& when, const watermarks& completed,
                                       accessor by) noexcept {
    past_access* past = accesses_.data() + writes_;
    for (const past_access* const end = accesses_.data() + accesses_.size(); past != end; ++past) {
        if (past->when.at.timeline == when.at.timeline && !past->former_owner &&
            weir::order::covers(where, past->where)) {
            replace(*past, where, std::move(when), by);
            return;
        }
    }
    if (accesses_.size() < bound) {
        past_access& made = accesses_.emplace_back();  // there is room: see `reserve`
        made.where.begin = where.begin;
        made.where.end = where.end;
        if (where.shape) {
            made.where.shape = where.shape;
        }
        made.when = std::move(when);
        made.by = by;
    } else {
        add({where, std::move(when), access_mode::read, false, by}, completed);
    }
}

[[gnu::hot]] void history::record_any(const footprint& where, access_mode mode, mark&& when,
                                      const watermarks& completed, accessor by, bool is_after_all) noexcept {
    const bool reads_only = mode == access_mode::read;
    if (reads_only && reads() >= bound) {
        add_to_many_reads({where, std::move(when), mode, false, by}, completed);
        return;
    }
    const auto forgotten = [&](const past_access& past) {
        if (!weir::order::covers(where, past.where)) {
            return false;
        }
        const bool is_ordered =
            !past.former_owner && ((is_after_all && !reads_only) || weir::order::covers(when, past.when.at));
        return is_ordered || completed.is_complete(past.when.at);
    };
    // A read replaces reads, which are stored behind the writes; a write replaces both. The first dropped access of the same kind is
    // overwritten in place.
    std::size_t slot = reads_only ? writes_ : 0;
    while (slot < accesses_.size() && !forgotten(accesses_[slot])) {
        ++slot;
    }
    if (slot == accesses_.size()) {
        add({where, std::move(when), mode, false, by}, completed);
        return;
    }
    const bool in_place = reads_only || slot < writes_;
    drop_from(in_place ? slot + 1 : slot, forgotten);
    if (!in_place) {
        insert({where, std::move(when), mode, false, by});
        return;
    }
    replace(accesses_[slot], where, std::move(when), by);
    if (reads_only) {
        reads_by_timeline_.invalidate();
    }
}

void history::grow(std::size_t more) {
    const std::size_t capacity = std::max(accesses_.size() + more, 2 * accesses_.capacity());
    accesses_.reserve(capacity);
    if (capacity > bound) {
        reads_by_timeline_.reserve(capacity);
    }
}

/// Drops the accesses from `first` on for which `drop` holds.
template <class Drop>
void history::drop_from(std::size_t first, Drop&& drop) noexcept {
    const std::size_t writes = writes_;
    std::size_t to = first;
    for (std::size_t i = first; i < accesses_.size(); ++i) {
        if (drop(accesses_[i])) {
            writes_ -= i < writes ? 1 : 0;
            continue;
        }
        if (to != i) {
            accesses_[to] = std::move(accesses_[i]);
        }
        ++to;
    }
    if (to != accesses_.size()) {
        accesses_.erase(accesses_.begin() + static_cast<std::ptrdiff_t>(to), accesses_.end());
        reads_by_timeline_.invalidate();
    }
}

void history::prune(const watermarks& completed) noexcept {
    drop_from(0, [&](const past_access& past) { return completed.is_complete(past.when.at); });
}

[[gnu::hot]] void history::insert(past_access&& added) noexcept {
    const bool is_write = added.mode == access_mode::write;
    accesses_.push_back(std::move(added));  // there is room: see `reserve`
    if (is_write) {
        if (reads() > 1) {
            std::swap(accesses_[writes_], accesses_.back());
            reads_by_timeline_.invalidate();
        }
        ++writes_;
    }
}

[[gnu::hot]] void history::add(past_access&& added, const watermarks& completed) noexcept {
    if (accesses_.size() >= bound) {
        prune(completed);
    }
    if (accesses_.size() < bound || !merge(added)) {
        insert(std::move(added));
    }
}

namespace {

/// Merges `added` into an access of the same kind and timeline: the hull of both, at the later point, whose clock includes the earlier
/// one's. Later accesses may wait for more than they need, never for less.
void widen(past_access& kept, const past_access& added) noexcept {
    kept.where = hull(kept.where, added.where);
    if (kept.when.at.at < added.when.at.at) {
        kept.when = added.when;
    }
}

}  // namespace

// One pass, so that many timelines on one resource stay cheap. Returns false if the timeline has no access of this kind here yet.
bool history::merge(const past_access& added) noexcept {
    const auto reads = accesses_.begin() + static_cast<std::ptrdiff_t>(writes_);
    const bool read = added.mode == access_mode::read;
    const auto end = read ? accesses_.end() : reads;
    const auto same = std::find_if(read ? reads : accesses_.begin(), end, [&](const past_access& past) {
        return past.when.at.timeline == added.when.at.timeline && !past.former_owner;
    });
    if (same == end) {
        return false;
    }
    widen(*same, added);
    return true;
}

void history::add_to_many_reads(past_access&& added, const watermarks& completed) noexcept {
    const auto timeline_at = [this](std::size_t place) { return accesses_[place].when.at.timeline; };
    const timeline_id timeline = added.when.at.timeline;
    reads_by_timeline_.update(writes_, accesses_.size(), timeline_at);
    const std::size_t found = reads_by_timeline_.find(timeline, timeline_at);
    if (found != timeline_index::none) {
        widen(accesses_[found], added);
        return;
    }
    if (reads() >= prune_at_) {
        prune(completed);
        prune_at_ = std::max(bound, 2 * reads());
        reads_by_timeline_.update(writes_, accesses_.size(), timeline_at);
    }
    insert(std::move(added));
    reads_by_timeline_.insert(accesses_.size() - 1, timeline, timeline_at);
}

void history::die(std::uint64_t size, const watermarks& completed) noexcept {
    if (accesses_.empty()) {
        return;
    }
    prune(completed);
    drop_implied();
    for (past_access& past : accesses_) {
        past.where = {0, size};
        past.mode = access_mode::write;
        past.former_owner = true;
    }
    writes_ = accesses_.size();
}

/// Drops the accesses that others imply; of two at the same point, one stays.
void history::drop_implied() noexcept {
    constexpr std::size_t few = 16;
    if (accesses_.size() <= few) {
        for (std::size_t i = 0; i < accesses_.size();) {
            const point at = accesses_[i].when.at;
            bool implied = false;
            for (std::size_t j = 0; j < accesses_.size() && !implied; ++j) {
                implied = j != i && weir::order::covers(accesses_[j].when, at);
            }
            if (implied) {  // at once, so that of two accesses at the same point one stays
                accesses_.erase(accesses_.begin() + static_cast<std::ptrdiff_t>(i));
            } else {
                ++i;
            }
        }
        return;
    }
    try {
        frontier known;   // what all accesses are ordered after
        frontier latest;  // the last point of each timeline
        for (const past_access& past : accesses_) {
            if (past.when.known) {
                known.merge(*past.when.known);
            }
            latest.merge(past.when.at);
        }
        frontier seen;
        std::erase_if(accesses_, [&](const past_access& past) {
            const point at = past.when.at;
            if (known.covers(at) || at.at < latest.at(at.timeline) || seen.covers(at)) {
                return true;
            }
            seen.merge(at);
            return false;
        });
    } catch (const std::bad_alloc&) {
        // Without memory, more accesses stay than necessary.
    }
}

void history::merge_death(const history& other, std::uint64_t size, const watermarks& completed) {
    reserve(other.accesses_.size());
    accesses_.insert(accesses_.end(), other.accesses_.begin(), other.accesses_.end());
    die(size, completed);
}

}  // namespace weir::order
