#pragma once

namespace weir::backend {

/// A full fence in every thread of the process: the caller sees everything that other threads wrote before, and they see what it wrote
/// before. Costs other threads nothing unless it is called; takes some microseconds. True if done; false, with no effect, where the
/// system has no membarrier(2). Any thread.
[[nodiscard]] bool process_barrier() noexcept;

/// Whether the system has such a barrier. The first call of either function registers the process with the system.
[[nodiscard]] bool has_process_barrier() noexcept;

}  // namespace weir::backend
