#pragma once

#include <string>

namespace weir::backend::cuda {

/// Whether a CUDA C++ source may include files of the program's: all that is not `#include <name>`, which finds the compiler's own
/// headers alone where no option names a folder. Says so of a source that asks whether there is a file, too, and rather too often than
/// not often enough. Throws std::bad_alloc.
[[nodiscard]] bool may_include_files(const std::string& source);

}  // namespace weir::backend::cuda
