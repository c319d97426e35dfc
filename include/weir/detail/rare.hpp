// Where code hardly ever comes by. Layer: base.
#pragma once

namespace weir::detail {

/// Says that the program hardly ever comes by here: compilers put what belongs to it apart from the rest of the function, which then
/// takes fewer cache lines. To be called first in a branch that [[unlikely]] alone would leave in its place.
[[gnu::cold, gnu::noinline]] inline void rare() noexcept {
    asm volatile("");  // else it is known to do nothing, and removed before anybody looks where it is called
}

}  // namespace weir::detail
