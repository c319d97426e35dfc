// How a kernel is launched, in the driver's numbers. Layer: base.
#pragma once

#include <array>

namespace weir::detail {

/// How many threads of how many blocks run, how much shared memory a block gets beyond what the kernel declares, and where. As the
/// driver wants it (CUlaunchConfig), so that a launch hands it on as it is.
struct launch_shape {
    std::array<unsigned, 3> grid{1, 1, 1};
    std::array<unsigned, 3> block{1, 1, 1};
    unsigned shared_bytes = 0;
    void* stream = nullptr;  ///< said when it is put there
    const void* attributes = nullptr;
    unsigned attribute_count = 0;
};

}  // namespace weir::detail
