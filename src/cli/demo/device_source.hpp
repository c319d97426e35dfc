#pragma once

namespace weir::demo {

/// The functions of kernels.hpp, and transforms of frames, in CUDA C++. CHANNELS, FRAME (a power of two), HOP,
/// FRAMES_PER_BLOCK, REACH (the neighbours of the filter) and MEMORY (of its running mean) are macros.
extern const char* const device_source;

}  // namespace weir::demo
