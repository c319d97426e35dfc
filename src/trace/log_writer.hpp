#pragma once

#include <iosfwd>

#include "trace/log.hpp"

namespace weir::trace {

/// The version of the published format, docs/evidence-log.md.
inline constexpr int log_version = 2;
/// Counts what that version has got besides: fields that older readers pass over, and older logs do not have.
inline constexpr int log_revision = 2;

/// Writes the log in that format. Errors are the stream's.
void write_log(std::ostream& to, const log& from);

}  // namespace weir::trace
