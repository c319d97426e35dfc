#pragma once

#include <span>
#include <string>

namespace weir::backend::cuda {

class context;

/// One kernel of a source text, to be compiled.
struct compile_request {
    const std::string& source;  ///< CUDA C++
    const std::string& name;    ///< the kernel; an expression ("axpy<float>") where no `extern "C"` is in the source
    std::span<const std::string> options;  ///< of NVRTC
};

/// What the compiler made of it.
struct compiled_program {
    std::string image;   ///< cubin, or PTX if the compiler does not know the device's architecture
    std::string symbol;  ///< what the kernel is called in it
};

/// Compiles for the device of `target`, without touching it. Slow. Throws missing_library, device_error (the compiler
/// fails), argument_error (the source or an option is wrong: has the compiler's log).
[[nodiscard]] compiled_program compile(const context& target, const compile_request& what);

}  // namespace weir::backend::cuda
