// Pairs of steps that are reported as unordered, compared with those that a model finds.
#pragma once

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "weir/check.hpp"

namespace weir::test {

/// Steps of a program, by the lines of its file "program": the first of each pair was enqueued first.
using pair_set = std::set<std::pair<int, int>>;

inline std::string to_string(const pair_set& pairs) {
    std::string text;
    for (const auto& [first, second] : pairs) {
        text += " #" + std::to_string(first) + "-#" + std::to_string(second);
    }
    return text.empty() ? " none" : text;
}

/// The races between steps that are of these kinds; of any kind if none is named.
inline pair_set pairs_of(const report& of, const std::set<std::string>& kinds = {}) {
    pair_set pairs;
    for (const race& one : of) {
        // Only steps, and not other accesses of the test.
        if (one.second.file == "program" && (kinds.empty() || kinds.contains(one.kind))) {
            pairs.emplace(static_cast<int>(one.first.line), static_cast<int>(one.second.line));
        }
    }
    return pairs;
}

/// The kinds that check may report if nothing orders two accesses of the same owner.
inline const std::set<std::string> order_races{"RAW", "WAR", "WAW", "host", "stale-event", "default-stream"};

/// Every reported pair is unordered, and every unordered pair is reported, perhaps as another pair of accesses of the same
/// two steps (`at_all`), unless an access in between stands for its first one. Returns what is wrong; empty if nothing is.
template <class Unordered>
std::string compare_pairs(const pair_set& reported, const pair_set& at_all, const Unordered& unordered) {
    pair_set missing;
    pair_set wrong = reported;
    for (const auto& one : unordered) {
        wrong.erase({one.first, one.second});
        if (one.certain && !at_all.contains({one.first, one.second})) {
            missing.emplace(one.first, one.second);
        }
    }
    if (missing.empty() && wrong.empty()) {
        return {};
    }
    return "not reported:" + to_string(missing) + "; reported but ordered:" + to_string(wrong) + "\n";
}

}  // namespace weir::test
