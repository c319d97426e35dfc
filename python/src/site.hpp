// Where in the Python program a call stands.
#pragma once

#include <string_view>

#include "weir/source_location.hpp"

namespace weir::python {

/// The line of the Python program that called, outside of the package itself. Needs the GIL, never fails: a line that cannot
/// be found is line 0.
[[nodiscard]] source_location here() noexcept;

/// The same text at an address that stays, as labels and locations need it. Each different text is kept once, for ever.
[[nodiscard]] const char* interned(std::string_view text);

}  // namespace weir::python
