// What part of a piece of memory an operation touches, and how. Pure values; layer: order.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weir::order {

/// How an operation touches memory. Writing includes changing in place: a write is ordered after earlier reads and
/// writes, a read after earlier writes only (rule O1).
enum class access_mode : std::uint8_t { read, write };

/// The bytes that one access may touch, relative to the start of the tracked memory: the half-open range
/// [begin, end). An empty footprint touches nothing (rule O3).
struct footprint {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;

    [[nodiscard]] constexpr bool empty() const noexcept { return begin >= end; }
    [[nodiscard]] constexpr std::uint64_t size() const noexcept { return empty() ? 0 : end - begin; }

    friend constexpr bool operator==(const footprint&, const footprint&) = default;
};

/// Whether the two share a byte. Exact for ranges.
[[nodiscard]] constexpr bool overlap(const footprint& a, const footprint& b) noexcept {
    return std::max(a.begin, b.begin) < std::min(a.end, b.end);
}

/// Whether every byte of `inner` is in `outer`.
[[nodiscard]] constexpr bool covers(const footprint& outer, const footprint& inner) noexcept {
    return inner.empty() || (outer.begin <= inner.begin && inner.end <= outer.end);
}

/// The smallest range that covers both.
[[nodiscard]] constexpr footprint hull(const footprint& a, const footprint& b) noexcept {
    if (a.empty()) {
        return b;
    }
    if (b.empty()) {
        return a;
    }
    return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

}  // namespace weir::order
