#pragma once

#include "random_programs/order_model.hpp"
#include "random_programs/program.hpp"

namespace random_programs {

/// A program of one thread in which nothing orders the accesses.
struct stripped_program {
    program steps;
    /// How many accesses overtake, for certain, an earlier access that they conflict with: a gate holds the earlier one
    /// back while the later one runs.
    int overtakings = 0;
};

/// When the gates of a stripped program open.
enum class gate_opening : std::uint8_t {
    as_written,  ///< where the program opens them: before the host would wait for what they hold
    late,  ///< at the end, or where the host has to wait in any case, and only after the host has waited for everything
           ///< that no gate holds back: so it is certain which access overtakes which
};

/// Removes everything that orders accesses from a completed program of one thread: what Weir would do (the whole process is
/// set to manual) and what the program does itself. Only the gates are left.
[[nodiscard]] stripped_program strip(const program& completed, gate_opening when);

/// The order in a program of one thread.
[[nodiscard]] order_model model_of(const program& completed, order_rules rules);

}  // namespace random_programs
