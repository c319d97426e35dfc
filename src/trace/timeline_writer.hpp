#pragma once

#include <iosfwd>

#include "trace/log.hpp"

namespace weir::trace {

/// Writes one self-contained page: the viewer of page/ with the evidence log inside. Errors are the stream's.
void write_timeline(std::ostream& to, const log& from);

}  // namespace weir::trace
