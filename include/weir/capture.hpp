// What Weir knows of captures of CUDA graphs, which others run. Layer: memory.
#pragma once

#include <cstdint>

#include "weir/export.hpp"

namespace weir {

/// Whether a capture of a CUDA graph may be running in the process.
enum class capture_knowledge : std::uint8_t {
    none,     ///< there is none, ever
    unknown,  ///< there may be: how it is until somebody says more
};

/// Declares what is known of captures in this process, in any library (rule L5). To learn when memory is free that was handed
/// to a library which does not say when it is done, Weir records an event behind everything in a context, and that ends
/// any capture there. So it does that only where there is none; otherwise such memory stays in quarantine
/// (memory::statistics) until `safe_point`. Never blocks.
WEIR_EXPORT void captures(capture_knowledge known) noexcept;

/// The caller states that no capture runs at this moment: memory in quarantine that was dropped before comes back as soon as
/// everything is over that is in the contexts of the CUDA devices in use. Returns at once with drivers of CUDA 12.5 and
/// later; with older ones it blocks until that is over, if there is memory in quarantine.
WEIR_EXPORT void safe_point() noexcept;

}  // namespace weir
