// The shape of a kernel launch, in the driver's numbers. Layer: base.
#pragma once

#include <array>
#include <cstdint>

namespace weir::detail {

/// The numbers of blocks and threads, each block's shared memory beyond what the kernel declares, and the stream. Has the layout of the
/// driver's CUlaunchConfig, so that a launch passes it on unchanged; `special` lies behind it, where the driver does not look.
struct launch_shape {
    std::array<unsigned, 3> grid{1, 1, 1};
    std::array<unsigned, 3> block{1, 1, 1};
    unsigned shared_bytes = 0;
    void* stream = nullptr;  ///< set when the launch is put into the stream
    const void* attributes = nullptr;
    unsigned attribute_count = 0;
    /// 0: a launch without attributes. Else the blocks of a cluster along x, y and z, a byte each from the lowest (all 0: as the kernel
    /// declares), and `cooperative_bit`.
    std::uint32_t special = 0;
    static constexpr std::uint32_t cooperative_bit = 1U << 24U;
};

}  // namespace weir::detail
