// The origin of an operation, and the kind of its code. Layer: base.
#pragma once

#include <cstdint>

#include "weir/source_location.hpp"

namespace weir::runtime {

/// The call that enqueued an operation. The label is a string literal, or null.
struct site {
    const char* label = nullptr;
    source_location where;
};

/// The kind of an operation, which decides what runs it.
enum class work_kind : std::uint8_t {
    device,     ///< code that computes and ends: runs on the device's own workers
    host_task,  ///< code that may block: runs on a worker of its own (DESIGN, Decisions)
    copy,       ///< moves bytes: runs on a copy engine if the device has one, and reaches memory of two devices
    gate,       ///< no code: a testing::gate holds the stream back here
    moment,     ///< notes the device's time for an event: takes no engine and no time
};

}  // namespace weir::runtime
