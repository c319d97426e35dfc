#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include "order/mark.hpp"

namespace weir::runtime {

class device_state;

/// The device's time, noted when a stream came by. To be read once the epoch is over that notes it.
struct time_noted {
    std::chrono::steady_clock::time_point at;
};

/// What all copies of an event share.
struct event_state {
    explicit event_state(bool timed);

    const std::uint64_t id;  ///< never used again
    const bool timing;
    std::mutex mutex;           ///< guards what follows; before the streams in the lock order
    order::mark recorded;       ///< what was recorded last; epoch 0 if nothing was
    bool of_operation = false;  ///< what was recorded last is the end of one operation, not a stream's tail

    std::shared_ptr<const time_noted> time;  ///< of what was recorded last, if that is timed
    const device_state* device = nullptr;    ///< where that was; null if nothing was, or it is not known

    std::shared_ptr<void> native;  ///< the driver's event for what was recorded last, once that was asked for

    [[nodiscard]] order::mark get() {
        const std::lock_guard lock(mutex);
        return recorded;
    }
};

}  // namespace weir::runtime
