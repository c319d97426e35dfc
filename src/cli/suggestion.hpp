#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::cli {

/// The one of `words` that somebody who wrote `wrong` may have meant: it begins like that, or differs by two letters at
/// most; empty if there is none.
[[nodiscard]] std::string nearest(std::string_view wrong, const std::vector<std::string>& words);

}  // namespace weir::cli
