// Memory that other libraries have released, for code that passes arrays on in a loop. Layer: memory.
#pragma once

#include "weir/export.hpp"

namespace weir::detail {

/// For a thread that passes memory from library to library: memory that consumers have released and are done with goes back to its owners on
/// this thread, instead of when Weir's threads come to it, up to 10 ms later. So a loop has no more memory than is in use. Does what
/// rule L5 allows: nothing comes back while captures may run. Waits for no work of a device. Owners let go here: call it under no lock.
WEIR_EXPORT void give_back_released() noexcept;

/// Whether `give_back_released` would look for such memory: it leaves one array to Weir's threads.
[[nodiscard]] WEIR_EXPORT bool has_released() noexcept;

}  // namespace weir::detail
