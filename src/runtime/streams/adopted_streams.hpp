#pragma once

#include <cstdint>
#include <functional>

#include "runtime/streams/stream_state.hpp"

namespace weir::runtime {

/// The process's streams whose queues other code uses as well, by the identity of their queues (rule S5). Owns none of them.
class adopted_streams {
public:
    /// The stream of the queue. If there is none, or only a closed one: the stream that `make` returns, which is entered here. `make` runs
    /// under no lock, because it calls the driver; if two threads make a stream of one queue, one of the two is dropped before anything
    /// knows it. The stream keeps the queue's owner. Throws what `make` throws, std::bad_alloc.
    [[nodiscard]] static detail::owner<stream_state> find_or_add(
        const native_identity& native, std::unique_ptr<retired_owner>& owner,
        const std::function<detail::owner<stream_state>()>& make);
    /// Adds a stream of Weir's own whose handle is given out: a caller that adopts the handle gets this stream. Throws std::bad_alloc.
    static void add(const native_identity& native, stream_state& stream);
    /// Removes a stream whose last owner is gone.
    static void remove(const stream_state& stream) noexcept;
};

}  // namespace weir::runtime
