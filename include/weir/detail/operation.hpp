// What an operation does, on its way into a stream. Layer: base.
#pragma once

#include "weir/detail/site.hpp"
#include "weir/detail/task.hpp"

namespace weir::detail {

/// One operation on its way to a device. Refers to what the call that passes it was given.
struct operation {
    task_ref work;
    const runtime::site& from;
    runtime::work_kind kind = runtime::work_kind::device;
    bool timed = false;  ///< its times are wanted
};

}  // namespace weir::detail
