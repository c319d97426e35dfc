#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::kernels {

/// The names of the kernels in a text, each once: the name before the parentheses that follow `marker`, which is "__global__"
/// in CUDA C++ and ".entry" in PTX. Comments and macros can deceive it: only for messages.
[[nodiscard]] std::vector<std::string> names_after(std::string_view text, std::string_view marker);

/// "; it has axpy, scale", or that it has none.
[[nodiscard]] std::string list_of(const std::vector<std::string>& names);

}  // namespace weir::kernels
