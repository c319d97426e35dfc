#pragma once

#include "frontier/point.hpp"
#include "weir/source_location.hpp"

namespace weir::runtime {

/// Blocks the calling thread until `p` is over, and tells the observers that it knows.
void host_wait(frontiers::point p, const source_location& where);

/// The same at the end of the enqueueing of work, which has been done: ends as backend::timeline_table::host_wait_or_end says.
void host_wait_or_end(frontiers::point p, const source_location& where);

/// Whether `p` is over. If so, the observers are told that the calling thread knows. Never blocks.
[[nodiscard]] bool host_ask(frontiers::point p, const source_location& where);

}  // namespace weir::runtime
