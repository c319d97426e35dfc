#pragma once

#include <string>
#include <vector>

namespace weir::cli {

/// Replaces this process by the Python program weir_conformance, run by the first python3 in PATH. Throws std::runtime_error if there is
/// none. If that Python lacks the package, the program prints what to install and ends with the status 2.
[[noreturn]] void become_conformance_suite(const std::vector<std::string>& arguments);

}  // namespace weir::cli
