#pragma once

#include <atomic>
#include <cstdint>

namespace weir::backend {

/// Counted in the whole process, by all threads: what weir::stats() tells. Only ever grow.
struct event_counts {
    /// Waits of a stream whose event stands behind a later operation than the one waited for (rule O7).
    static inline std::atomic<std::uint64_t> late_waits{0};
    /// Events of a driver's that Weir has made.
    static inline std::atomic<std::uint64_t> made{0};
};

}  // namespace weir::backend
