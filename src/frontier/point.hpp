// The folder frontier/ holds positions in time and sets of them. It is pure: no threads, no devices, no
// allocation beyond what its sets hold, and it includes nothing but the standard library.
#pragma once

#include <cstdint>

namespace weir::frontiers {

/// Names one timeline (one per stream). An index that the owner of the timelines hands out; an index may be
/// handed out again once everything on its timeline is complete, and its epochs then go on where they ended,
/// so that an old point stays what it was: complete.
using timeline_id = std::uint32_t;

/// A position in a timeline. The first operation of a timeline has epoch 1; 0 is "before everything".
using epoch = std::uint64_t;

/// A position in a given timeline (DESIGN section 3, *epoch*).
struct point {
    timeline_id timeline = 0;
    epoch at = 0;

    friend bool operator==(const point&, const point&) = default;
};

}  // namespace weir::frontiers
