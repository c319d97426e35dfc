// Finds in CUDA C++ source what the host's compiler must be told of.
#pragma once

#include <string>
#include <vector>

namespace weir_fake {

struct scanned_source {
    std::string text;                  ///< with dynamic shared memory in words of the host; lines stay where they are
    std::vector<std::string> kernels;  ///< names of those that are no templates, with their namespaces
};

scanned_source scan(const std::string& source);

}  // namespace weir_fake
