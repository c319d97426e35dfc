#pragma once

namespace weir::cli {

/// Prints the CUDA devices, what was found to drive them, and which functions of newer drivers there are; or why there are
/// none, and what to do.
void print_cuda();

}  // namespace weir::cli
