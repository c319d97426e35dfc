#pragma once

#include <string>
#include <vector>

namespace weir::cli {

/// @{
/// Replaces this process by a program of Python, run by the first python3 in PATH: the conformance suite (the package weir_conformance),
/// and `weir check` (a part of the package weir). Throws std::runtime_error if there is no python3. If that Python lacks the package, the
/// program prints what to install and ends with the status 2.
[[noreturn]] void become_conformance_suite(const std::vector<std::string>& arguments);
[[noreturn]] void become_check(const std::vector<std::string>& arguments);
/// @}

}  // namespace weir::cli
