// The images that the fake NVRTC makes and the fake driver loads: this header, followed by a shared object of the host.
#pragma once

#include <cstdint>

namespace weir_fake {

struct image_header {
    char magic[16];
    std::uint64_t bytes;        ///< of the shared object
    std::int32_t architecture;  ///< 90 for compute capability 9.0
    std::int32_t is_ptx;        ///< else a cubin, which is for that architecture only
};

inline constexpr char image_magic[16] = {'w', 'e', 'i', 'r', '-', 'f', 'a', 'k',
                                         'e', '-', 'i', 'm', 'a', 'g', 'e', '\n'};

}  // namespace weir_fake
