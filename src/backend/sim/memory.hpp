#pragma once

#include "backend/backend.hpp"

namespace weir::backend::sim {

/// Memory that is mapped twice: at the address that it returns for the device, and, at a distance from it, once more for
/// the host, without any access: a host that reaches for it faults at once. Without an address if there is none.
[[nodiscard]] memory_piece map_twice(std::size_t bytes) noexcept;

/// Gives it back: the same piece, the same size.
void unmap(memory_piece piece, std::size_t bytes) noexcept;

}  // namespace weir::backend::sim
