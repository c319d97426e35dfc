#pragma once

#include <bit>
#include <cstdint>

#include "cli/demo/audio.hpp"

namespace weir::demo {

/// Whether two samples are the same to the last bit.
[[nodiscard]] inline bool same_bits(float a, float b) noexcept {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// How far two recordings of the same length are apart.
struct difference {
    std::int64_t samples = 0;  ///< that are not the same to the last bit
    double share = 0;          ///< of all, from 0 to 1
};

[[nodiscard]] difference compare(const recording& result, const recording& right);

}  // namespace weir::demo
