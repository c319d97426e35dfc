// The pools behind buffers: what they hold, and how much they may hold. Layer: memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weir/device.hpp"
#include "weir/export.hpp"

namespace weir::memory {

/// Where the bytes of a device's pool are, as the pool rounds them. live + pending + cached, with the pool's part of quarantined, is what it
/// has from the driver.
struct statistics {
    std::size_t live = 0;     ///< owned by buffers
    std::size_t pending = 0;  ///< dropped, but operations may still use them
    std::size_t cached = 0;   ///< dropped and complete: free to use, or to give back to the driver
    /// Dropped, but a library that does not say when it is done may still use them (rule L5): see captures and safe_point. For a CUDA
    /// device's own memory this includes memory of other libraries that Weir passed on.
    std::size_t quarantined = 0;
    std::size_t peak = 0;   ///< the most that was live and pending at once, measured when memory was handed out
    std::size_t limit = 0;  ///< the limit for live, pending, cached and quarantined together (rule L6)
    /// How often, because the pool was at its limit, a stream got memory for which it may have to wait longer than until the former owner's
    /// last use is complete: on a CUDA device, also for later work in that owner's stream (rule L1).
    std::uint64_t over_waited = 0;
};

/// One of the two pools behind a device's streams.
enum class pool_kind : std::uint8_t {
    own,     ///< the device's own memory
    shared,  ///< memory that the host and CUDA devices both reach: pinned() on the CPU, managed() on a CUDA device
};

/// The present figures; all 0 for a shared pool that was not used yet. Never blocks on work of a device.
[[nodiscard]] WEIR_EXPORT statistics stats(device of = cpu(), pool_kind which = pool_kind::own);

/// Limits what the pool may take from the driver: live, pending and cached together (rule L6). At first the limit is the device's memory,
/// and it is never higher. Memory beyond a lower limit stays until it is dropped and trimmed. Imports of other libraries' memory count
/// only while that memory is in quarantine: an import with which such memory would exceed the limit waits for what consumers are done with,
/// or throws out_of_memory (exchange::from_dlpack). Never waits for work of a device.
WEIR_EXPORT void limit(device of, std::size_t bytes);

/// Gives cached memory back to the driver, as far as whole chunks are free. Never waits for work of a device.
WEIR_EXPORT void trim(device of = cpu());

}  // namespace weir::memory
