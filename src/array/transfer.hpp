#pragma once

#include <cstddef>
#include <span>

#include "weir/launch.hpp"

namespace weir::operation {

/// One operation that moves the bytes of `src`, packed, to `dst`, packed, on a stream of either device, or of one that
/// reaches both. Writes dst, reads src.
completion transfer(const on& where, const array& dst, const array& src);

/// The same from memory of the host, as it is at the call. `dst` is packed.
completion transfer_from_host(const on& where, const array& dst, std::span<const std::byte> src);

}  // namespace weir::operation
