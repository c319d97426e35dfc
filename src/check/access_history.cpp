#include "check/access_history.hpp"

#include <algorithm>
#include <cstddef>

namespace weir::check {

void access_history::record(const past_access& access, const program_order& order) {
    if (access.where.empty()) {
        return;
    }
    const auto covered = [&](const past_access& past) {
        const bool same_kind = access.mode == order::access_mode::write || past.mode == order::access_mode::read;
        return same_kind && overlap(access.where, past.where) && order.ordered(access.when.who, past.when);
    };
    // Most programs use the same ranges again: then nothing is cut in two and nothing moves.
    std::vector<past_access> rests;
    for (past_access& past : accesses_) {
        if (!covered(past)) {
            continue;
        }
        past_access before = past;
        before.where.end = std::min(past.where.end, access.where.begin);
        past.where.begin = std::max(past.where.begin, access.where.end);
        if (!before.where.empty()) {
            std::swap(before, past);
            if (!before.where.empty()) {
                rests.push_back(before);
            }
        }
    }
    std::erase_if(accesses_, [](const past_access& past) { return past.where.empty(); });
    accesses_.insert(accesses_.end(), rests.begin(), rests.end());
    accesses_.push_back(access);
}

}  // namespace weir::check
