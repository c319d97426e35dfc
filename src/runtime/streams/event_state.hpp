#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include "order/mark.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/source_location.hpp"

namespace weir::runtime {

class device_state;

/// The device's time when a stream reached a timed event. May be read once the epoch that writes it is complete.
struct time_noted {
    std::chrono::steady_clock::time_point at;
};

/// The state that all copies of an event share.
struct event_state {
    explicit event_state(bool timed);

    const std::uint64_t id;  ///< never reused
    const bool timing;
    detail::mutex mutex;        ///< guards what follows; before the streams in the lock order
    order::mark recorded;       ///< the last recorded point; epoch 0 if nothing was recorded
    bool of_operation = false;  ///< whether `recorded` is the end of one operation, and not a stream's tail

    std::shared_ptr<const time_noted> time;  ///< of the last record, if that is timed
    const device_state* device = nullptr;    ///< of the last record; null if there is none, or it is not known

    std::shared_ptr<void> native;  ///< the driver's event for the last record, once `handle` was called

    [[nodiscard]] order::mark get() {
        const std::lock_guard lock(mutex);
        return recorded;
    }
};

class stream_state;

/// Device-side: `stream` continues once what the event holds now is complete. Does not block. Throws as stream_ref::wait.
void wait_for(stream_state& stream, event_state& of, const source_location& where);

}  // namespace weir::runtime
