#pragma once

namespace weir::cli {

/// Prints the CUDA devices, the libraries found for them, and which functions of newer drivers exist; or why there are
/// no devices, and what to do.
void print_cuda();

}  // namespace weir::cli
