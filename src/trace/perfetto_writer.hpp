#pragma once

#include <iosfwd>

#include "trace/log.hpp"

namespace weir::trace {

/// Writes the log in the JSON that Perfetto and chrome://tracing read: operations that ran are slices, each stream is a thread, waits are
/// flows, memory is a counter. Errors are those of the stream `to`.
void write_perfetto(std::ostream& to, const log& from);

}  // namespace weir::trace
