// An operation on its way into a stream. Layer: base.
#pragma once

#include "weir/detail/site.hpp"
#include "weir/detail/task.hpp"

namespace weir::detail {

/// One operation on its way to a device. Refers to the arguments of the call that passes it.
struct operation {
    task_ref work;
    const runtime::site& from;
    runtime::work_kind kind = runtime::work_kind::device;
    bool timed = false;  ///< its times are wanted
};

}  // namespace weir::detail
