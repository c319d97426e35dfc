#pragma once

#include "backend/capability/kernels.hpp"

namespace weir::backend::cuda {

class context;

using capability::compile_request;
using capability::compiled_program;

/// Compiles for the device of `target`, without touching it. Slow. Throws missing_library, device_error (the compiler
/// fails), argument_error (the source or an option is wrong: has the compiler's log).
[[nodiscard]] compiled_program compile(const context& target, const compile_request& what);

}  // namespace weir::backend::cuda
