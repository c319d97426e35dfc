#pragma once

#include "random_programs/program.hpp"

namespace random_programs {

/// Makes a program of any list of steps, so that a program from which steps were removed becomes a program again:
///  - leaves out steps whose slots do not hold what they need,
///  - where the program is to order accesses itself (rule O5), adds the events, waits and `after` that this takes,
///  - opens a gate before the host waits for what the gate holds back,
///  - makes a read of what would be a view for reading what is not valid,
///  - ends what a phase began: scopes, views, gates.
/// Fills in what the steps mean.
[[nodiscard]] program complete(const program& raw);

}  // namespace random_programs
