#pragma once

#include <cstddef>
#include <span>

#include "weir/array.hpp"
#include "weir/completion.hpp"
#include "weir/on.hpp"

namespace weir::operation {

/// One operation that moves the bytes of `src`, packed, to `dst`, packed, on a stream of either device, or of a device that
/// reaches both. Writes dst, reads src.
completion transfer(const on& where, const array& dst, const array& src);

/// The same from host memory, with its contents at the time of the call. `dst` is packed.
completion transfer_from_host(const on& where, const array& dst, std::span<const std::byte> src);

}  // namespace weir::operation
