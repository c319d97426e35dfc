#pragma once

#include <iosfwd>

#include "trace/log.hpp"

namespace weir::trace {

/// Writes one self-contained page: the viewer of page/ with the evidence log in it. Errors are those of the stream `to`.
void write_timeline(std::ostream& to, const log& from);

}  // namespace weir::trace
