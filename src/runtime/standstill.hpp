#pragma once

#include <string>
#include <vector>

#include "frontier/point.hpp"

namespace weir::runtime {

/// What holds up an operation: the way from it to what it waits for, and on to what that waits for, as far as can be seen.
struct standstill {
    /// How far the streams on the way are. As long as that does not change, nothing moves.
    std::vector<frontiers::point> reached;
    /// One line for each step.
    std::string story;
};

/// Looks at this moment. Locks one stream after the other, none for long. Throws std::bad_alloc.
[[nodiscard]] standstill why_not_over(frontiers::point target);

/// One thing that a stream was given, in words.
struct pending_work {
    std::string name;                     ///< its label and its line in the program
    std::string stream;                   ///< where it is
    std::vector<frontiers::point> waits;  ///< what it waits for that is not over
};

/// Looks at this moment; locks its stream, for a moment. What is over may have no name any more. Throws std::bad_alloc.
[[nodiscard]] pending_work look_at(frontiers::point target);

/// Whether `target` comes after `what`, as far as streams have been told: neither is over. Locks one stream after the other. Throws
/// std::bad_alloc.
[[nodiscard]] bool comes_after(frontiers::point target, frontiers::point what);

/// The closed gate that `target` comes after, as far as streams have been told, in words; empty if there is none. Locks one
/// stream after the other. Throws std::bad_alloc.
[[nodiscard]] std::string closed_gate_before(frontiers::point target);

}  // namespace weir::runtime
