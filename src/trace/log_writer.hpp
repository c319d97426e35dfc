#pragma once

#include <iosfwd>

#include "trace/log.hpp"

namespace weir::trace {

/// The version of the published format, docs/evidence-log.md.
inline constexpr int log_version = 2;
/// Counts additions to that version: fields that older readers skip, and that older logs do not have.
inline constexpr int log_revision = 3;

/// Writes the log in that format. Errors are those of the stream `to`.
void write_log(std::ostream& to, const log& from);

}  // namespace weir::trace
