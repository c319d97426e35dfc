#include "memory/free_index.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "order/history.hpp"

namespace weir::memory {

namespace {

/// Whether a stream that may use memory with the death frontier `big` may also use memory with `small`.
bool dominates(const order::history& big, const order::history& small) noexcept {
    return std::all_of(small.accesses().begin(), small.accesses().end(), [&](const order::past_access& one) {
        return std::any_of(big.accesses().begin(), big.accesses().end(),
                           [&](const order::past_access& other) { return order::covers(other.when, one.when.at); });
    });
}

bool on_one_timeline(const order::history& a, const order::history& b) noexcept {
    return a.accesses().size() == 1 && b.accesses().size() == 1 &&
           a.accesses()[0].when.at.timeline == b.accesses()[0].when.at.timeline;
}

}  // namespace

bool free_index::mergeable(block& low, block& high, merging how) const noexcept {
    low.history.prune(*completed_);
    high.history.prune(*completed_);
    if (low.history.empty() && high.history.empty()) {
        return true;
    }
    if (how == merging::equals) {
        return on_one_timeline(low.history, high.history);
    }
    return dominates(low.history, high.history) || dominates(high.history, low.history);
}

void free_index::absorb_upper(block& low, block_list& spares) noexcept {
    block& high = *low.upper;
    // One frontier dominates the other, and becomes that of both. Swapping the histories cannot fail; copying could.
    if (!dominates(low.history, high.history)) {
        std::swap(low.history, high.history);
    }
    low.capacity += high.capacity;
    low.history.die(low.capacity, *completed_);
    low.freed_at = std::max(low.freed_at, high.freed_at);
    low.upper = high.upper;
    if (low.upper != nullptr) {
        low.upper->lower = &low;
    }
    high.history.clear();
    high.where = place::aside;
    spares.push_back(high);
}

void free_index::insert(block& b, merging how, block_list& spares) noexcept {
    block* merged = &b;
    while (merged->upper != nullptr && merged->upper->where == place::indexed &&
           mergeable(*merged, *merged->upper, how)) {
        remove(*merged->upper);
        absorb_upper(*merged, spares);
    }
    while (merged->lower != nullptr && merged->lower->where == place::indexed &&
           mergeable(*merged->lower, *merged, how)) {
        merged = merged->lower;
        remove(*merged);
        absorb_upper(*merged, spares);
    }
    merged->history.prune(*completed_);
    merged->where = place::indexed;
    merged->counts_as_pending = !merged->history.empty();
    *pending_ += merged->counts_as_pending ? merged->capacity : 0;
    lists_[class_below(merged->capacity)].push_back(*merged);
}

void free_index::remove(block& b) noexcept {
    lists_[class_below(b.capacity)].remove(b);
    *pending_ -= b.counts_as_pending ? b.capacity : 0;
    b.where = place::aside;
}

void free_index::take_all(block_list& all) noexcept {
    for (block_list& list : lists_) {
        while (block* const b = list.first()) {
            remove(*b);
            all.push_back(*b);
        }
    }
}

void free_index::merge_all(merging how, block_list& spares) noexcept {
    block_list all;
    take_all(all);
    while (block* const b = all.first()) {
        all.remove(*b);
        insert(*b, how, spares);
    }
}

template <class Suits>
block* free_index::search(std::size_t size, std::size_t most, Suits&& suits) const noexcept {
    for (std::size_t index = class_below(size); index < class_count; ++index) {
        std::size_t seen = 0;
        for (block* b = lists_[index].first(); b != nullptr && seen < most; b = b->next, ++seen) {
            if (b->capacity >= size && suits(*b)) {
                return b;
            }
        }
    }
    return nullptr;
}

bool free_index::must_wait(frontiers::point at, const requester& user) const noexcept {
    return at.timeline != user.line && !(user.known && user.known->covers(at)) && !completed_->is_complete(at);
}

std::size_t free_index::waits_for(const block& b, const requester& user) const noexcept {
    const auto accesses = b.history.accesses();
    return static_cast<std::size_t>(
        std::count_if(accesses.begin(), accesses.end(),
                      [&](const order::past_access& past) { return must_wait(past.when.at, user); }));
}

bool free_index::has_own_ends(const block& b, const requester& user) const noexcept {
    const auto accesses = b.history.accesses();
    return std::all_of(accesses.begin(), accesses.end(), [&](const order::past_access& past) {
        return !must_wait(past.when.at, user) || completed_->has_own_end(past.when.at);
    });
}

block* free_index::find_ordered(std::size_t size, const requester& user, std::size_t most) const noexcept {
    return search(size, most, [&](const block& b) { return waits_for(b, user) == 0; });
}

block* free_index::find_any(std::size_t size, const requester& user, ends which) const noexcept {
    block* best = nullptr;
    std::size_t fewest = std::numeric_limits<std::size_t>::max();
    search(size, everything, [&](block& b) {
        const std::size_t waits = waits_for(b, user);
        if (waits < fewest && (which == ends::any || has_own_ends(b, user))) {
            fewest = waits;
            best = &b;
        }
        return fewest == 0;
    });
    return best;
}

std::optional<frontiers::point> free_index::oldest_pending(std::span<const frontiers::point> but) const noexcept {
    const auto is_left_out = [&](const order::past_access& past) {
        return std::any_of(but.begin(), but.end(), [&](frontiers::point one) {
            return past.when.at.timeline == one.timeline && past.when.at.at >= one.at;
        });
    };
    const block* oldest = nullptr;
    std::optional<frontiers::point> point;
    for (const block_list& list : lists_) {
        for (const block* b = list.first(); b != nullptr; b = b->next) {
            if (oldest != nullptr && oldest->freed_at < b->freed_at) {
                continue;
            }
            const auto accesses = b->history.accesses();
            const auto pending = std::find_if(accesses.begin(), accesses.end(), [&](const order::past_access& past) {
                return !completed_->is_complete(past.when.at);
            });
            if (pending != accesses.end() && std::none_of(accesses.begin(), accesses.end(), is_left_out)) {
                oldest = b;
                point = pending->when.at;
            }
        }
    }
    return point;
}

bool free_index::has_newly_complete() const noexcept {
    const auto is_newly_complete = [&](const block& b) {
        const auto accesses = b.history.accesses();
        return b.counts_as_pending &&
               std::all_of(accesses.begin(), accesses.end(),
                           [&](const order::past_access& past) { return completed_->is_complete(past.when.at); });
    };
    bool found = false;
    for (const block_list& list : lists_) {
        for (const block* b = list.first(); b != nullptr && !found; b = b->next) {
            found = is_newly_complete(*b);
        }
    }
    return found;
}

void free_index::take_complete_chunks(block_list& whole) noexcept {
    for (block_list& list : lists_) {
        for (block* b = list.first(); b != nullptr;) {
            block* const after = b->next;
            if (b->lower == nullptr && b->upper == nullptr) {
                b->history.prune(*completed_);
                if (b->history.empty()) {
                    remove(*b);
                    whole.push_back(*b);
                }
            }
            b = after;
        }
    }
}

}  // namespace weir::memory
