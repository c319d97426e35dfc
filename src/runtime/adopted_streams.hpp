#pragma once

#include <cstdint>
#include <functional>

#include "runtime/stream_state.hpp"

namespace weir::runtime {

/// The streams of the process whose queues others use as well, by what tells their queues apart (rule S5). Owns none of them.
class adopted_streams {
public:
    /// The stream of the queue. If there is none, or only a closed one: the one that `make` makes, which enters here. `make` runs under
    /// no lock, since it calls the driver; if two threads make a stream of one queue, the stream of one of them is dropped unseen.
    /// The stream keeps the queue's owner. Throws what `make` throws, std::bad_alloc.
    [[nodiscard]] static detail::owner<stream_state> find_or_add(
        const native_identity& native, std::unique_ptr<retired_owner>& owner,
        const std::function<detail::owner<stream_state>()>& make);
    /// A stream of Weir's own whose handle is given out: whoever adopts that gets the stream. Throws std::bad_alloc.
    static void add(const native_identity& native, stream_state& stream);
    /// The last owner of a stream is gone.
    static void remove(const stream_state& stream) noexcept;
};

}  // namespace weir::runtime
