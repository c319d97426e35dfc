#pragma once

#include "frontier/point.hpp"
#include "weir/source_location.hpp"

namespace weir::runtime {

/// Blocks the calling thread until `p` is over, and tells the observers that it knows.
void host_wait(frontiers::point p, const source_location& where);

/// Whether `p` is over. If so, the observers are told that the calling thread knows. Never blocks.
[[nodiscard]] bool host_ask(frontiers::point p, const source_location& where);

}  // namespace weir::runtime
