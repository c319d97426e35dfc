// The pools behind buffers: what they hold, how much they may hold. Layer: memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weir/device.hpp"
#include "weir/export.hpp"

namespace weir::memory {

/// Where the bytes of a device's pool are, as the pool rounds them. live + pending + cached +
/// quarantined is what it has from the driver.
struct statistics {
    std::size_t live = 0;     ///< owned by buffers
    std::size_t pending = 0;  ///< dropped, but operations may still use them
    std::size_t cached = 0;   ///< dropped, and over: free to use, or to give back to the driver
    /// Dropped, but a library may still use it that does not say when it is done (rule L5): see captures and safe_point.
    std::size_t quarantined = 0;
    std::size_t peak = 0;   ///< the most that was live and pending at once, seen when memory was handed out
    std::size_t limit = 0;  ///< the most that live, pending, cached and quarantined may be together (rule L6)
    /// How often, because the pool was at its limit, a stream got memory for which it may have to wait longer than until the
    /// former owner's last use is over: on a CUDA device, for what came behind that in its stream, too (rule L1).
    std::uint64_t over_waited = 0;
};

/// Which of the pools behind a device's streams.
enum class pool_kind : std::uint8_t {
    own,     ///< of the device's own memory
    shared,  ///< of memory that the host and CUDA devices both reach: pinned() on the CPU, managed() on a CUDA device
};

/// The figures of this moment; all 0 of a shared pool that nobody has used. Never blocks on work of a device.
[[nodiscard]] WEIR_EXPORT statistics stats(device of = cpu(), pool_kind which = pool_kind::own);

/// Limits what the pool may take from the driver, live, pending and cached together (rule L6). At first the limit is the
/// device's memory, and it is never more. What is beyond a lower limit stays until it is dropped and trimmed.
/// Never waits for work of a device.
WEIR_EXPORT void limit(device of, std::size_t bytes);

/// Gives cached memory back to the driver, as far as whole pieces of it are free. Never waits for work of a device.
WEIR_EXPORT void trim(device of = cpu());

}  // namespace weir::memory
