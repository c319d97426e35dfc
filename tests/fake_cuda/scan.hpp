// Finds what the host's compiler needs to know in CUDA C++ source.
#pragma once

#include <string>
#include <vector>

namespace weir_fake {

struct scanned_source {
    std::string text;                  ///< with dynamic shared memory in the host's terms; line numbers stay the same
    std::vector<std::string> kernels;  ///< names of the kernels that are no templates, with their namespaces
};

scanned_source scan(const std::string& source);

}  // namespace weir_fake
