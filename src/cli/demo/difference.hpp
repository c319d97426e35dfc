#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "cli/demo/audio.hpp"

namespace weir::demo {

/// Whether two samples differ in any bit and by more than `tolerance`.
[[nodiscard]] inline bool differ(float a, float b, float tolerance = 0) noexcept {
    const bool same_bits = std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
    // NaN is not within any tolerance.
    return !same_bits && !(tolerance > 0 && std::abs(a - b) <= tolerance);
}

/// How far two recordings of the same length are apart.
struct difference {
    std::int64_t samples = 0;  ///< number of samples that differ
    double share = 0;          ///< fraction of all samples, from 0 to 1
    /// Largest difference of two samples, whether or not they count as different; infinite for NaN.
    double furthest = 0;
};

[[nodiscard]] difference compare(const recording& result, const recording& right, float tolerance = 0);

}  // namespace weir::demo
