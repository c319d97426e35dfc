#pragma once

#include <cstddef>

#include "memory/block.hpp"
#include "memory/pool.hpp"
#include "runtime/device_state.hpp"
#include "runtime/stream_state.hpp"
#include "weir/source_location.hpp"

namespace weir::memory {

/// The device's pool; made at the first call, never destroyed.
[[nodiscard]] pool& pool_of(runtime::device_state& device);

/// The pool of memory that the host and CUDA devices both reach: pinned memory on the CPU, managed memory on a CUDA device.
/// Made at the first call, never destroyed. Throws argument_error (there is none for this kind of device), device_error.
[[nodiscard]] pool& shared_pool_of(runtime::device_state& device);

/// At least `bytes` bytes (not 0) from the pool of the stream's device, taken from what is best for the stream. Blocks only
/// where pool::take says so. Throws out_of_memory, device_error (a lost device), state_error (closed stream), std::bad_alloc.
[[nodiscard]] detail::owner<block> allocate(std::size_t bytes, runtime::stream_state& on, const source_location& where);
/// The same from another pool of the device.
[[nodiscard]] detail::owner<block> allocate(pool& from, std::size_t bytes, runtime::stream_state& on,
                                            const source_location& where);
/// The same, if the pool has it at hand for this stream: asks no driver and waits for nobody. Null if it has not.
[[nodiscard]] detail::owner<block> allocate_at_hand(pool& from, std::size_t bytes, runtime::stream_state& on,
                                                    const source_location& where);

}  // namespace weir::memory
