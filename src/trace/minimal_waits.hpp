#pragma once

#include <cstdint>

#include "trace/log.hpp"

namespace weir::trace {

/// The fewest cross-stream waits that give the order which a log's operations need (rule O10): the number of edges between different
/// streams in the transitive reduction of
///  - the order of each stream,
///  - for each two conflicting accesses, with exact footprints, the order in which they were enqueued,
///  - what `after`, the program's own waits, and waits of the host asked for; the host's waits cost nothing.
/// The order that is owed to packages which share memory (entries and exits) costs nothing here and is counted elsewhere. Nothing counts
/// as complete unless the host knew it. What pooled memory needs when it gets a new owner is left out. A wait without an operation counts
/// with the next operation of its stream, or when another stream waits for it.
///
/// One pass with vector clocks: its time grows with operations times streams, and with the number of accesses kept for a resource.
[[nodiscard]] std::uint64_t minimal_waits(const log& of);

}  // namespace weir::trace
