#pragma once

#include "trace/log.hpp"
#include "weir/trace.hpp"

namespace weir::trace {

/// Counts what a log contains.
[[nodiscard]] trace_summary summarise(const log& of);

}  // namespace weir::trace
