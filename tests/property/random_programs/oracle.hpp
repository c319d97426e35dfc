#pragma once

#include <map>
#include <set>
#include <vector>

#include "random_programs/program.hpp"

namespace random_programs {

/// The failing steps that may be reported to the host when it waits, and those that must be unless they were reported before.
struct tidings {
    std::set<int> possible;
    std::set<int> due;
};

/// The results that a program must have.
struct expectation {
    std::map<int, std::vector<double>> seen;     ///< by step: what the host reads
    std::map<int, std::vector<double>> finally;  ///< by slot: the contents of the arrays that are left

    std::vector<int> operations;  ///< all, by their steps
    /// By step: operations that do not do their work, and reads of the host that are refused, because of which failing step.
    std::map<int, int> failed;
    std::map<int, std::vector<int>> poisoned;  ///< by slot, as `finally`: for each element the failing step, or none
    /// By step, where the host waits. Empty for programs of several threads: other threads may have got the reports.
    std::map<int, tidings> told;
    int healings = 0;  ///< how often invalid elements were written anew
};

/// What an operation does that depends on a failed one.
enum class dependents : std::uint8_t {
    rest,  ///< nothing (rule K4)
    run,   ///< for controls: its work, as always, and so does the failing operation
};

/// Computes them, one step after the other in the order of enqueueing, in memory of its own. Threads are processed one after
/// the other in each phase: a program's result does not depend on how they take turns.
[[nodiscard]] expectation expected(const program& completed, dependents of_failures = dependents::rest);

}  // namespace random_programs
