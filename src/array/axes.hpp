#pragma once

#include <cstdint>

#include "weir/reduction.hpp"
#include "weir/shape.hpp"

namespace weir::layout {

/// The axes of `extents` that are reduced, one bit each. Throws argument_error: no such axis, or one that is named twice.
[[nodiscard]] std::uint64_t chosen_axes(const shape& extents, const along& axes);

}  // namespace weir::layout
