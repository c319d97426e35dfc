#include "check/access_history.hpp"

#include <algorithm>

namespace weir::check {

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
