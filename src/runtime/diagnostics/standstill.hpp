#pragma once

#include <string>
#include <vector>

#include "frontier/point.hpp"

namespace weir::runtime {

/// What holds up an operation: the chain from it to what it waits for, and on to what that waits for, as far as is known.
struct standstill {
    /// How far the streams of the chain are. As long as this does not change, there is no progress.
    std::vector<frontiers::point> reached;
    /// One line for each step.
    std::string story;
};

/// Describes the present moment. Locks one stream after the other, none for long. Throws std::bad_alloc.
[[nodiscard]] standstill why_not_over(frontiers::point target);

/// One operation of a stream, in words.
struct pending_work {
    std::string name;                     ///< its label and its line in the program
    std::string stream;                   ///< the stream that it is in
    std::vector<frontiers::point> waits;  ///< the points that it waits for and that are not complete
};

/// Describes the present moment; locks the point's stream briefly. A complete operation may have no name any more. Throws
/// std::bad_alloc.
[[nodiscard]] pending_work look_at(frontiers::point target);

/// Whether `target` comes after `what`, by the order that was enqueued into streams; neither is complete. Locks one stream after the
/// other. Throws std::bad_alloc.
[[nodiscard]] bool comes_after(frontiers::point target, frontiers::point what);

/// A closed gate that `target` comes after, by the order that was enqueued into streams, in words; empty if there is none. Locks one
/// stream after the other. Throws std::bad_alloc.
[[nodiscard]] std::string closed_gate_before(frontiers::point target);

}  // namespace weir::runtime
