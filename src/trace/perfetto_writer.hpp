#pragma once

#include <iosfwd>

#include "trace/log.hpp"

namespace weir::trace {

/// Writes the log in the JSON that Perfetto and chrome://tracing read: operations that ran as slices, one thread for each
/// stream, waits as flows, memory as a counter. Errors are the stream's.
void write_perfetto(std::ostream& to, const log& from);

}  // namespace weir::trace
