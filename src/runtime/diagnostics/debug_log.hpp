#pragma once

#include <string_view>

namespace weir::runtime {

/// Writes `line` to the standard error output if the environment variable WEIR_LOG is "debug". For failures that no exception can
/// report. Any thread; takes no lock of Weir.
void debug_log(std::string_view line) noexcept;
/// Whether the log is on, for lines that are expensive to make.
[[nodiscard]] bool has_debug_log() noexcept;

}  // namespace weir::runtime
