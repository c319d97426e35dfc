// What is known of captures of CUDA graphs in the process. Layer: memory.
#pragma once

#include <cstdint>

#include "weir/export.hpp"

namespace weir {

/// Whether a capture of a CUDA graph may be running in the process.
enum class capture_knowledge : std::uint8_t {
    none,     ///< there is none, at any time
    unknown,  ///< there may be captures: the state until the program declares otherwise
};

/// Declares what is known of captures in this process, in any library (rule L5). A library may not say when it is done with memory that
/// was passed to it. To find out when such memory is free, Weir records an event behind everything in a context, and that ends any
/// capture in progress there. So Weir does that only if there are no captures; otherwise such memory stays in quarantine
/// (memory::statistics) until `safe_point`. Never blocks.
WEIR_EXPORT void captures(capture_knowledge known) noexcept;

/// The caller states that no capture is in progress at this moment: memory in quarantine that was dropped before comes back as soon as
/// everything is complete that is in the contexts of the CUDA devices in use. What consumers have released before the call counts as
/// dropped: the call waits until Weir's thread has handled those releases. It waits for no work of a device with drivers of CUDA 12.5 and
/// later; with older drivers it blocks until that work is complete, if there is memory in quarantine.
WEIR_EXPORT void safe_point() noexcept;

}  // namespace weir
