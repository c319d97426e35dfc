#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::cli {

/// The word of `words` that a user who wrote `wrong` may have meant: it begins with the same letters, or differs by at most two letters;
/// empty if there is none.
[[nodiscard]] std::string nearest(std::string_view wrong, const std::vector<std::string>& words);

}  // namespace weir::cli
