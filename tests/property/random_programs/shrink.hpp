#pragma once

#include <functional>

#include "random_programs/program.hpp"

namespace random_programs {

/// Takes steps out of a raw program for as long as `fails` says that what is left, completed, fails: first many at a
/// time, then single ones. Gives the smallest raw program found; asks at most `most` times.
[[nodiscard]] program shrink(program raw, const std::function<bool(const program& raw)>& fails, int most = 2000);

}  // namespace random_programs
