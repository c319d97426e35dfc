#include "cli/suggestion.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace weir::cli {

namespace {

/// How many letters have to be added, removed or changed to turn one word into the other (Levenshtein).
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
        }
    }
    return row.back();
}

}  // namespace

std::string nearest(std::string_view wrong, const std::vector<std::string>& words) {
    constexpr std::size_t still_near = 2;
    const auto far = [&](const std::string& word) {
        return !wrong.empty() && word.starts_with(wrong) ? 0 : distance(wrong, word);
    };
    const auto best = std::min_element(words.begin(), words.end(),
                                       [&](const std::string& a, const std::string& b) { return far(a) < far(b); });
    return best != words.end() && far(*best) <= still_near ? *best : "";
}

}  // namespace weir::cli
