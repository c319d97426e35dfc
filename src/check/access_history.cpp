#include "check/access_history.hpp"

#include <algorithm>

namespace weir::check {

order::footprint part_within(const order::footprint& where, std::uint64_t base, std::uint64_t address,
                             std::uint64_t bytes, bool& is_cut) {
    const std::uint64_t from = base + where.begin;
    const std::uint64_t to = base + where.end;
    const std::uint64_t end = address + bytes;
    if (to <= address || end <= from) {
        return {};
    }
    order::footprint part{std::max(from, address) - address, std::min(to, end) - address};
    if (where.shape && from >= address && to <= end) {
        part.shape = where.shape;
    } else if (where.shape) {
        is_cut = true;
    }
    return part;
}

past_access moved(const past_access& access, std::uint64_t base, std::uint64_t address, std::uint64_t bytes) {
    past_access result = access;
    bool is_cut = false;
    result.where = part_within(access.where, base, address, bytes, is_cut);
    if (is_cut) {
        result.touches = observe::certainty::possible;
    }
    return result;
}

void access_history::cut(past_access& past, const order::footprint& where, std::vector<past_access>& rests) {
    if (covers(where, past.where)) {
        past.where = {};
        return;
    }
    if (where.shape || past.where.shape) {
        return;  // the rest would not be a simple range
    }
    // Most programs use the same ranges again: then nothing is split and nothing moves.
    past_access before = past;
    before.where.end = std::min(past.where.end, where.begin);
    past.where.begin = std::max(past.where.begin, where.end);
    if (!before.where.empty()) {
        std::swap(before, past);
        if (!before.where.empty()) {
            rests.push_back(before);
        }
    }
}

void access_history::drop_empty() {
    std::erase_if(accesses_, [](const past_access& past) { return past.where.empty(); });
}

}  // namespace weir::check
