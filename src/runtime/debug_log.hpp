#pragma once

#include <string_view>

namespace weir::runtime {

/// Notes `line` on the standard error output if the environment says WEIR_LOG=debug: what goes wrong where nobody can be
/// told by an exception. Any thread; takes no lock of Weir.
void debug_log(std::string_view line) noexcept;
/// Whether the environment says so, for lines that take an effort.
[[nodiscard]] bool has_debug_log() noexcept;

}  // namespace weir::runtime
