#pragma once

#include <iosfwd>
#include <string_view>

#include "trace/log.hpp"

namespace weir::trace {

/// Reads what write_log wrote. Skips unknown fields, as the format's versions allow. Throws argument_error, with `name` and the number of
/// the line, for another format or version, a line that is not a record, or a log that was cut short.
[[nodiscard]] log read_log(std::istream& from, std::string_view name = "log");

}  // namespace weir::trace
