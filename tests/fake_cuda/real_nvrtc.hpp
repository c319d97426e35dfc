#pragma once

#include <string>
#include <utility>
#include <vector>

namespace weir_fake {

/// What the real NVRTC is given.
struct real_program {
    const std::string& source;
    const std::string& name;
    const std::vector<std::pair<std::string, std::string>>& headers;  ///< name and text
    const std::vector<std::string>& expressions;
    const std::vector<std::string>& options;
};

/// Compiles the program with the library that WEIR_REAL_NVRTC names, which needs no GPU, and throws the code away: what the host's compiler
/// takes for the fake need not be CUDA C++. Returns why it does not compile; empty if it does, or if the variable is not set.
[[nodiscard]] std::string refused_by_real_nvrtc(const real_program& what);

}  // namespace weir_fake
