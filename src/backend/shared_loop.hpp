#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace weir::backend {

/// One part of a loop: `context` is what the caller passed.
using loop_part = void (*)(void* context, std::size_t part);

/// Calls `body(context, part)` for each part below `count`, on the calling thread and on the CPU's idle workers. Returns when
/// all parts are done. Rethrows the first exception that a part throws, after the parts that had begun are done; parts that had not
/// begun are left out.
///
/// Never deadlocks, also where parts call it again: the calling thread runs every part that no worker has begun, and waits only for
/// parts that workers have begun, never for a worker to start. Where memory or threads run out, the calling thread runs all parts.
void share_loop(std::size_t count, loop_part body, void* context);

/// The same with a function object.
template <class Body>
void share_loop(std::size_t count, Body&& body) {
    using type = std::remove_reference_t<Body>;
    share_loop(
        count, [](void* context, std::size_t part) { (*static_cast<type*>(context))(part); },
        const_cast<void*>(static_cast<const void*>(std::addressof(body))));
}

/// The number of threads that can share a loop: the threads of the CPU's streams (WEIR_CPU_THREADS).
[[nodiscard]] std::size_t loop_threads() noexcept;

}  // namespace weir::backend
