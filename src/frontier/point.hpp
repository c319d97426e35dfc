// The folder frontier/ holds positions in time and sets of them. It has no threads and no devices, allocates only what its sets hold,
// and includes nothing but the standard library.
#pragma once

#include <cstdint>

namespace weir::frontiers {

/// Identifies one timeline (one per stream). An index that the owner of the timelines assigns. It may be assigned again once everything
/// on its timeline is complete; epochs then continue where they ended, so that an old point stays complete.
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
