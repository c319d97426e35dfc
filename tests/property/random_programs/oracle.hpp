#pragma once

#include <map>
#include <set>
#include <vector>

#include "random_programs/program.hpp"

namespace random_programs {

/// Which failing steps the host may be told of when it waits, and of which it is told unless it was told of them before.
struct tidings {
    std::set<int> possible;
    std::set<int> due;
};

/// What a program has to compute.
struct expectation {
    std::map<int, std::vector<double>> seen;     ///< by step: what the host reads
    std::map<int, std::vector<double>> finally;  ///< by slot: what is in the arrays that are left

    std::vector<int> operations;  ///< all, by their steps
    /// By step: operations that do not do their work, and reads of the host that are refused, because of which failing step.
    std::map<int, int> failed;
    std::map<int, std::vector<int>> poisoned;  ///< by slot, as `finally`: for each element the failing step, or none
    /// By step, where the host waits. Nothing of programs of several threads: others may have been told.
    std::map<int, tidings> told;
    int healings = 0;  ///< how often what was not valid was written anew
};

/// What an operation does that depends on one that failed.
enum class dependents : std::uint8_t {
    rest,  ///< nothing (rule K4)
    run,   ///< for controls: what it always does, and so does the one that fails
};

/// Computes it, one step after the other in the order of enqueueing, in memory of its own. Threads are taken one after
/// the other in each phase: a program's result does not depend on how they take turns.
[[nodiscard]] expectation expected(const program& completed, dependents of_failures = dependents::rest);

}  // namespace random_programs
