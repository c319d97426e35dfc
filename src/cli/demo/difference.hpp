#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "cli/demo/audio.hpp"

namespace weir::demo {

/// Whether two samples are not the same to the last bit, and further apart than `tolerance`.
[[nodiscard]] inline bool differ(float a, float b, float tolerance = 0) noexcept {
    const bool same_bits = std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
    // Nothing is within a tolerance of what is no number.
    return !same_bits && !(tolerance > 0 && std::abs(a - b) <= tolerance);
}

/// How far two recordings of the same length are apart.
struct difference {
    std::int64_t samples = 0;  ///< that differ
    double share = 0;          ///< of all, from 0 to 1
    double furthest = 0;       ///< two samples, whether or not they count as different; infinite for what is no number
};

[[nodiscard]] difference compare(const recording& result, const recording& right, float tolerance = 0);

}  // namespace weir::demo
