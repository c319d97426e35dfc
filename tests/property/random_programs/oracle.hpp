#pragma once

#include <map>
#include <vector>

#include "random_programs/program.hpp"

namespace random_programs {

/// What a program has to compute.
struct expectation {
    std::map<int, std::vector<double>> seen;     ///< by step: what the host reads
    std::map<int, std::vector<double>> finally;  ///< by slot: what is in the arrays that are left
};

/// Computes it, one step after the other in the order of enqueueing, in memory of its own. Threads are taken one after
/// the other in each phase: a program's result does not depend on how they take turns.
[[nodiscard]] expectation expected(const program& completed);

}  // namespace random_programs
