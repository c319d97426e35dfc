#pragma once

#include <atomic>
#include <cstdint>

namespace weir::backend {

/// Process-wide counters, shared by all threads, that weir::stats() reports. They only grow.
struct event_counts {
    /// Waits of a stream whose event covers a later operation than the one waited for (rule O7).
    static inline std::atomic<std::uint64_t> late_waits{0};
    /// Driver events that Weir has made.
    static inline std::atomic<std::uint64_t> made{0};
};

}  // namespace weir::backend
