#pragma once

namespace weir::backend {

/// What all other threads of the process wrote before, the caller sees from here on, and they see what it wrote before: a
/// fence in each of them, which costs them nothing while nobody asks. Some microseconds. Says so by true; false where the
/// system has no membarrier(2): then nothing has happened. Any thread.
[[nodiscard]] bool process_barrier() noexcept;

/// Whether there is one. The first call of either makes the process known to the system.
[[nodiscard]] bool has_process_barrier() noexcept;

}  // namespace weir::backend
