#pragma once

#include "backend/backend.hpp"

namespace weir::backend::sim {

/// Memory that is mapped twice: at the returned address for the device, and once more, at a fixed distance, for
/// the host, without any access rights: a host access faults at once. Without an address if there is none left.
[[nodiscard]] memory_chunk map_twice(std::size_t bytes) noexcept;

/// Gives it back: the same chunk, the same size.
void unmap(memory_chunk chunk, std::size_t bytes) noexcept;

}  // namespace weir::backend::sim
