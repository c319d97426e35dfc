#pragma once

#include <cstdint>
#include <mutex>

#include "order/mark.hpp"

namespace weir::runtime {

/// What all copies of an event share.
struct event_state {
    event_state();

    const std::uint64_t id;  ///< never used again
    std::mutex mutex;        ///< guards `recorded`; before the streams in the lock order
    order::mark recorded;    ///< what was recorded last; epoch 0 if nothing was

    [[nodiscard]] order::mark get() {
        const std::lock_guard lock(mutex);
        return recorded;
    }
};

}  // namespace weir::runtime
