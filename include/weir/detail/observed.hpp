// Whether a check or a trace is active. Layer: observe.
#pragma once

#include "weir/export.hpp"

namespace weir::detail {

/// Whether an observer (a check, a trace) records operations and the lines of the program that enqueue them. Any thread; never blocks.
[[nodiscard]] WEIR_EXPORT bool is_observed() noexcept;

}  // namespace weir::detail
