#pragma once

#include <string_view>

namespace weir::trace {

/// The text of the viewer, whose parts are in page/; CMake compiles it into the library.
[[nodiscard]] std::string_view timeline_page() noexcept;

}  // namespace weir::trace
