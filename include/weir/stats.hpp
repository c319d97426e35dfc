// Counts of what ordering has cost the process so far. Layer: runtime.
#pragma once

#include <cstdint>

#include "weir/export.hpp"

namespace weir {

/// Counts of the whole process since its start; they only grow. A value.
struct WEIR_EXPORT ordering_statistics {
    /// What was put into streams: operations, and what stands in a stream for a wait that the program asked for or for work of other code.
    std::uint64_t operations = 0;
    /// Device-side waits of one stream for another that Weir has put into streams: those that it found missing, and those that the program
    /// asked for.
    std::uint64_t waits_issued = 0;
    /// Such waits that were needed and not put into the stream, because the stream was ordered already, the awaited work was complete, or
    /// another wait of the same operation implied them (rule O2). Operations of one stream need no waits for each other, so they do not
    /// count. An operation that is planned twice, first on the fast path and then on the slow one, may count twice.
    std::uint64_t waits_elided = 0;
    /// Device-side waits that covered more than necessary: the driver's event stands behind a later operation of the stream than the one
    /// that is waited for (rule O7). At most the first wait for a stream is such a wait, unless no event could be made.
    std::uint64_t late_waits = 0;
    /// Events of a device's driver that Weir has made. Events are reused: in the steady state the number does not grow.
    std::uint64_t driver_events = 0;
};

/// The present counts. Each stream keeps its own, under the lock that its operations take in any case, and this adds them up: it waits for
/// no work and calls no driver. In a child of a fork that cannot use Weir, the counts of streams are 0.
[[nodiscard]] WEIR_EXPORT ordering_statistics stats() noexcept;

}  // namespace weir
