// Memory that is internal to Weir. Layer: array.
#pragma once

#include "weir/array.hpp"
#include "weir/buffer.hpp"
#include "weir/export.hpp"

namespace weir::detail {

/// @{
/// Marks memory that the program does not see: copies of operands, staging, workspaces. The program cannot order accesses to it, so Weir
/// orders them in every mode (rule O5), and check ignores them. All such memory passes through this function: it takes memory that was
/// just allocated, and returns it. Never blocks.
[[nodiscard]] WEIR_EXPORT buffer internal(buffer made) noexcept;
[[nodiscard]] WEIR_EXPORT array internal(array made) noexcept;
/// @}

}  // namespace weir::detail
