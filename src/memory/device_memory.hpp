#pragma once

#include <cstddef>
#include <string>

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

/// Gives complete memory that Weir's pools of the device, and its driver, only keep back to the device. Blocks until it can
/// be had there. Under no lock.
void give_back_all(runtime::device_state& device) noexcept;
/// For messages: what Weir's pools of the device hold, but for the pool `but`, and what its driver says. Sentences, each after
/// a space.
[[nodiscard]] std::string where_memory_is(runtime::device_state& device, const pool* but);

/// At least `bytes` bytes (not 0) from the pool of the stream's device, taken from what is best for the stream. Blocks only
/// where pool::take says so, and for memory that is on its way back to the driver. Throws out_of_memory, device_error,
/// state_error (closed stream), std::bad_alloc.
[[nodiscard]] detail::owner<block> allocate(std::size_t bytes, runtime::stream_state& on, const source_location& where);
/// The same from another pool of the device.
[[nodiscard]] detail::owner<block> allocate(pool& from, std::size_t bytes, runtime::stream_state& on,
                                            const source_location& where);
/// The same, if the pool has it at hand for this stream: asks no driver and waits for nobody. Null if it has not.
[[nodiscard]] detail::owner<block> allocate_at_hand(pool& from, std::size_t bytes, runtime::stream_state& on,
                                                    const source_location& where);

}  // namespace weir::memory
