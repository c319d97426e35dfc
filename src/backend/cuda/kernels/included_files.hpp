#pragma once

#include <string>

namespace weir::backend::cuda {

/// Whether a CUDA C++ source may include files of the program: by anything but `#include <name>`, which finds only the compiler's
/// own headers where no option names a folder. Also true for a source that tests whether a file exists. In doubt the answer is true.
/// Throws std::bad_alloc.
[[nodiscard]] bool may_include_files(const std::string& source);

}  // namespace weir::backend::cuda
