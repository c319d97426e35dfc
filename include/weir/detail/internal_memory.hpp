// Memory that only Weir knows. Layer: array.
#pragma once

#include "weir/array.hpp"
#include "weir/buffer.hpp"
#include "weir/export.hpp"

namespace weir::detail {

/// @{
/// Memory that the program does not see: copies of operands, staging, workspaces. The program cannot order what it does not see, so
/// Weir orders the accesses in every mode (rule O5), and check leaves them to Weir. All such memory is made by this function.
/// Takes memory that was just allocated, and returns it. Never blocks.
[[nodiscard]] WEIR_EXPORT buffer internal(buffer made) noexcept;
[[nodiscard]] WEIR_EXPORT array internal(array made) noexcept;
/// @}

}  // namespace weir::detail
