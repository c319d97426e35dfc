#pragma once

#include "trace/log.hpp"
#include "weir/trace.hpp"

namespace weir::trace {

/// What a log holds, in numbers.
[[nodiscard]] trace_summary summarise(const log& of);

}  // namespace weir::trace
