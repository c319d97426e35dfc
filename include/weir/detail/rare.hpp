// Marks cold paths. Layer: base.
#pragma once

namespace weir::detail {

/// Marks a cold path: compilers move the code of its branch out of line, so that the rest of the function takes fewer cache lines. Must be
/// called first in a branch that [[unlikely]] alone would leave in line.
[[gnu::cold, gnu::noinline]] inline void cold_path() noexcept {
    // Without this, the compiler sees that the function does nothing, and removes its calls before they have any effect.
    asm volatile("");
}

}  // namespace weir::detail
