#pragma once

#include <string_view>

namespace weir::trace {

/// The text of the viewer. CMake makes it from the files in page/ and compiles it into the library.
[[nodiscard]] std::string_view timeline_page() noexcept;

}  // namespace weir::trace
