#pragma once

#include <string>
#include <vector>

namespace weir::cli {

/// Replaces this process by the program weir-verify, which shares no code with Weir (rule V4): the one beside this program, else the
/// first in PATH. If there is none, throws std::runtime_error with what to do.
[[noreturn]] void become_verifier(const std::vector<std::string>& arguments);

}  // namespace weir::cli
