#pragma once

#include <functional>

#include "random_programs/program.hpp"

namespace random_programs {

/// Removes steps from a raw program for as long as `fails` says that the rest, completed, fails: first many at a
/// time, then single ones. Returns the smallest raw program found; calls `fails` at most `most` times.
[[nodiscard]] program shrink(program raw, const std::function<bool(const program& raw)>& fails, int most = 2000);

}  // namespace random_programs
