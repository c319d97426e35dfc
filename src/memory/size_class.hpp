// The folder memory/ hands out device memory and takes it back in stream order (rules L1, L6). It includes runtime/ and the folders below
// that; array/ is above it. size_class.hpp defines the sizes of memory.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

namespace weir::memory {

/// Every size and every offset is a multiple of this; it is also the alignment that buffers guarantee.
inline constexpr std::size_t granule = 256;

/// Sizes beyond this are not rounded up to a class: up to a quarter of them would be wasted.
inline constexpr std::size_t largest_class = std::size_t{64} << 20;

/// The number of classes; the last ones are beyond any address space.
inline constexpr std::size_t class_count = 196;

/// Classes are 1, 2, 3, 4 granules, then four for each doubling: 5, 6, 7, 8, 10, 12, 14, 16, 20, ...
/// The largest class that is not larger than `bytes`, which is at least one granule.
[[nodiscard]] constexpr std::size_t class_below(std::size_t bytes) noexcept {
    const std::size_t units = bytes / granule;
    if (units <= 4) {
        return units - 1;
    }
    const auto doubling = static_cast<std::size_t>(std::bit_width(units)) - 3;  // units >> doubling is 4 to 7
    return 4 * doubling + (units >> doubling) - 1;
}

/// The size of a class in bytes.
[[nodiscard]] constexpr std::size_t class_size(std::size_t index) noexcept {
    if (index < 4) {
        return (index + 1) * granule;
    }
    return ((index % 4 + 5) << (index / 4 - 1)) * granule;
}

/// The smallest class that is not smaller than `bytes`, which is not 0.
[[nodiscard]] constexpr std::size_t class_above(std::size_t bytes) noexcept {
    const std::size_t units = (bytes + granule - 1) / granule;
    if (units <= 4) {
        return units - 1;
    }
    const auto doubling = static_cast<std::size_t>(std::bit_width(units - 1)) - 3;
    return 4 * doubling + ((units - 1) >> doubling);
}

[[nodiscard]] constexpr std::size_t round_up(std::size_t bytes, std::size_t multiple) noexcept {
    return (bytes + multiple - 1) / multiple * multiple;
}

/// The bytes that the pool spends on a request for `bytes`, which is not 0 and can be rounded without overflow.
[[nodiscard]] constexpr std::size_t rounded_size(std::size_t bytes) noexcept {
    return bytes <= largest_class ? class_size(class_above(bytes)) : round_up(bytes, std::size_t{64} << 10);
}

}  // namespace weir::memory
