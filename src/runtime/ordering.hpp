#pragma once

#include <optional>

#include "weir/ordering.hpp"

namespace weir::runtime {

/// The mode of the innermost ordering_scope of the calling thread.
[[nodiscard]] std::optional<ordering_mode> scope_ordering() noexcept;
/// The mode of the process.
[[nodiscard]] ordering_mode process_ordering() noexcept;

}  // namespace weir::runtime
