#pragma once

#include <cstdint>

namespace weir::order {

/// How many device-side waits a stream's operations have needed so far, for weir::stats(). Not synchronized: guarded by the stream's lock.
struct wait_counts {
    std::uint64_t issued = 0;
    /// Waits for other streams that were needed and not issued, because something implied them (witness_kind, but for `same_stream`).
    std::uint64_t elided = 0;
};

}  // namespace weir::order
