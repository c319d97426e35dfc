#pragma once

#include <atomic>
#include <cstddef>
#include <string>

#include "memory/block.hpp"
#include "memory/pool.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/streams/stream_state.hpp"
#include "weir/source_location.hpp"

namespace weir::memory {

/// Slow path of pool_of: makes the pool, unless another thread is faster.
[[nodiscard]] pool& make_pool_of(runtime::device_state& device);
/// The device's pool; made at the first call, never destroyed.
[[nodiscard]] inline pool& pool_of(runtime::device_state& device) {
    // Pairs with the compare-exchange in make_pool_of: a thread that sees the pointer sees the constructed pool.
    pool* const known = device.pool.load(std::memory_order_acquire);
    return known != nullptr ? *known : make_pool_of(device);
}

/// The pool of memory that the host and CUDA devices both reach: pinned memory on the CPU, managed memory on a CUDA device. Made at the
/// first call, never destroyed. Throws argument_error (there is none for this kind of device), device_error.
[[nodiscard]] pool& shared_pool_of(runtime::device_state& device);

/// Gives back to the device all complete memory that Weir's pools of the device, and its driver, only cache. Blocks until the memory is
/// available there. Call under no lock.
void give_back_all(runtime::device_state& device) noexcept;
/// Throws argument_error unless pools and drivers align memory at least so.
void expect_alignment(std::size_t alignment);
/// For messages: what Weir's pools of the device hold, except the pool `but`, and what its driver reports. Sentences, each after a
/// space.
[[nodiscard]] std::string where_memory_is(runtime::device_state& device, const pool* but);

/// Makes sure that an import of `bytes` bytes of another library's memory on the device keeps the limit, towards which such memory counts
/// while it is in quarantine (rule L5). Without any in quarantine each import is within it. Gives back what consumers are done with; then
/// blocks until enough has left quarantine, as far as its end is recorded. Throws out_of_memory if too much stays there. Owners let go
/// here: call it under no lock, also not under that of an interpreter.
void expect_room_for_import(runtime::device_state& device, std::size_t bytes);

/// At least `bytes` bytes (not 0) from `from`, a pool of the device of `on`. Memory comes first that `first`, a stream of any device, can
/// use without a wait: it uses the memory before `on` does, and usually is `on` itself. Blocks only where pool::take says so, and for
/// memory that is on its way back to the driver. Throws out_of_memory, device_error, state_error (closed stream), std::bad_alloc.
[[nodiscard]] detail::owner<block> allocate(pool& from, std::size_t bytes, runtime::stream_state& on,
                                            runtime::stream_state& first, const source_location& where);
/// Only memory that `on`, which also uses it first, used last: does not call the driver and waits for nothing. Null if there is none.
[[nodiscard]] detail::owner<block> allocate_at_hand(pool& from, std::size_t bytes, runtime::stream_state& on,
                                                    const source_location& where);

}  // namespace weir::memory
