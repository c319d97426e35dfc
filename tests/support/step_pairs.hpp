// Pairs of steps that something reports as unordered, held against those that a model finds.
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

/// The races between steps that are of these kinds; of any, if none is named.
inline pair_set pairs_of(const report& of, const std::set<std::string>& kinds = {}) {
    pair_set pairs;
    for (const race& one : of) {
        // Not what a test does besides.
        if (one.second.file == "program" && (kinds.empty() || kinds.contains(one.kind))) {
            pairs.emplace(static_cast<int>(one.first.line), static_cast<int>(one.second.line));
        }
    }
    return pairs;
}

/// What check may call it if nothing orders two accesses of the same owner.
inline const std::set<std::string> order_races{"RAW", "WAR", "WAW", "host", "stale-event", "default-stream"};

/// Every pair that is reported is unordered, and every unordered pair is reported, perhaps as something else that the same
/// two steps do (`at_all`), unless an access in between stands for its first one. What is wrong; empty if nothing is.
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
