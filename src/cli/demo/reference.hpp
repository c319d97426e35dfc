#pragma once

#include "cli/demo/audio.hpp"

namespace weir::demo {

/// The right result, computed by a plain loop without streams, events or arrays of Weir. Uses the same kernels and the same
/// transforms in the same order, so that it agrees with a well-ordered pipeline to the last bit. Blocks while it computes.
[[nodiscard]] recording reference_result(const recording& sound);

}  // namespace weir::demo
