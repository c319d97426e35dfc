// Counts what ordering has cost the process so far. Layer: runtime.
#pragma once

#include <cstdint>

#include "weir/export.hpp"

namespace weir {

/// Counts of the whole process since it began; they only grow. A value.
struct WEIR_EXPORT ordering_statistics {
    /// Device-side waits that covered more than they had to: the driver's event stands behind a later operation of the stream
    /// than the one waited for (rule O7). At most the first wait for a stream is such a one, unless an event could not be had.
    std::uint64_t late_waits = 0;
    /// Events of a device's driver that Weir has made. They are used again: in the steady state the number stays.
    std::uint64_t driver_events = 0;
};

/// The counts at this moment. Does not block, makes no call of a driver.
[[nodiscard]] WEIR_EXPORT ordering_statistics stats() noexcept;

}  // namespace weir
