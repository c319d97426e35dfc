#pragma once

#include "frontier/point.hpp"
#include "weir/source_location.hpp"

namespace weir::runtime {

/// Blocks the calling thread until `p` is complete, and notifies the observers that the calling thread has waited for it.
void host_wait(frontiers::point p, const source_location& where);

/// The same at the end of a call that has enqueued work already: ends as backend::timeline_table::host_wait_or_end says.
void host_wait_or_end(frontiers::point p, const source_location& where);

/// Whether `p` is complete. If so, notifies the observers that the calling thread knows. Never blocks.
[[nodiscard]] bool host_ask(frontiers::point p, const source_location& where);

}  // namespace weir::runtime
