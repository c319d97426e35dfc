#pragma once

#include <string>

#include "array/elements/source.hpp"

namespace weir::elements {

/// The error messages of a compiler for a wrong source.
struct compile_failure {
    std::string compiler;
    std::string log;
};

/// The system's C++ compiler: the command in WEIR_CXX, else c++, g++ or clang++.
class host_compiler {
public:
    /// The compiler that the environment names now. Throws missing_library: there is none.
    [[nodiscard]] static const host_compiler& find();

    /// A shared library of `source`, for this processor. Slow. Throws compile_failure, device_error (the compiler cannot be run, or no
    /// temporary file made).
    [[nodiscard]] std::string compile(const std::string& source) const;

    /// Everything besides the source that the result depends on: compiler, version, options, processor.
    [[nodiscard]] const std::string& identity() const noexcept { return identity_; }

    explicit host_compiler(std::string command, const std::string& version);

private:
    std::string command_;  ///< words, divided by spaces
    std::string identity_;
};

/// The compiled loop of a source: from the folder of compiled kernels, else compiled and stored there. It is never unloaded, so
/// that enqueued work need not keep it. Throws as host_compiler.
[[nodiscard]] host_loop load_loop(const std::string& source);

}  // namespace weir::elements
