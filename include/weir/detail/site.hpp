// Where an operation comes from and what kind of code it is. Layer: base.
#pragma once

#include <cstdint>

#include "weir/source_location.hpp"

namespace weir::runtime {

/// Which call enqueued an operation. The label is a string literal, or null.
struct site {
    const char* label = nullptr;
    source_location where;
};

/// What runs an operation.
enum class work_kind : std::uint8_t {
    device,     ///< code that computes and ends: runs on the device's own workers
    host_task,  ///< code that may block: runs on a worker of its own (DESIGN, Decisions)
    copy,       ///< moves bytes: runs on a copy engine where the device has such, and reaches memory of two devices
    gate,       ///< no code: a testing::gate holds the stream back here
    moment,     ///< notes the device's time for an event: takes no engine and no time
};

}  // namespace weir::runtime
