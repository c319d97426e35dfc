#include "check/event_history.hpp"

#include <vector>

namespace weir::check {

void event_history::recorded(std::uint64_t event, moment at, frontiers::point holds, const source_location& where) {
    if (records_.size() == most) {
        records_.pop_front();
    }
    records_.push_back({event, at, holds, where});
}

void event_history::waited(std::uint64_t event, moment at, frontiers::point target, const program_order& order,
                           const source_location& where) {
    if (waits_.size() == most) {
        waits_.pop_front();
    }
    const std::optional<moment> taken = order.find(target);
    waits_.push_back({event, at, target, taken, taken ? order.tail(taken->stream) : 0, where});
}

void event_history::waited(moment at, frontiers::point target, const program_order& order,
                           const source_location& where) {
    for (const record& one : records_) {
        if (one.holds == target) {
            waited(one.event, at, target, order, where);
        }
    }
}

std::optional<stale_wait> event_history::would_order(const wait& one, moment first, const program_order& order) const {
    stale_wait found{one.where, std::nullopt, std::nullopt};
    for (const record& other : records_) {
        if (other.event != one.event) {
            continue;
        }
        if (other.holds == one.target) {
            found.taken = other.where;
        } else if (order.ordered(first, other.at)) {
            found.better = other.where;
        }
    }
    const bool too_early =
        one.taken && one.taken->stream == first.stream && one.taken->at < first.at && first.at <= one.tail;
    return found.better || too_early ? std::optional(found) : std::nullopt;
}

}  // namespace weir::check
