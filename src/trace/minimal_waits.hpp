#pragma once

#include <cstdint>

#include "trace/log.hpp"

namespace weir::trace {

/// The fewest cross-stream waits that give the order which a log's operations need (rule O10): the number of edges
/// between different streams in the transitive reduction of
///  - the order of each stream,
///  - for each two conflicting accesses, with exact footprints, the order in which they were enqueued,
///  - what `after`, the program's own waits, and waits of the host asked for; the host's cost nothing.
/// The order that packages which share memory are owed (entries and exits) is there for nothing and counts elsewhere.
/// Nothing counts as over unless the host knew. What pooled memory needs when it gets a new owner is left out. A wait
/// that stands alone counts with the next operation of its stream, or where another stream waits for it.
///
/// One pass with vector clocks: time grows with operations times streams, and with the accesses that a resource keeps.
[[nodiscard]] std::uint64_t minimal_waits(const log& of);

}  // namespace weir::trace
