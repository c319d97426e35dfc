// What part of a piece of memory an operation touches, and how. Pure values; layer: order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "weir/detail/intrusive.hpp"
#include "weir/export.hpp"

namespace weir::order {

/// How an operation touches memory. Writing includes changing in place: a write is ordered after earlier reads and
/// writes, a read after earlier writes only (rule O1).
enum class access_mode : std::uint8_t { read, write };

class box;

/// The bytes that one access may touch, relative to the start of the tracked memory: the half-open range [begin, end),
/// or, with a `shape`, the parts of it that the shape selects (rule O3). An empty footprint touches nothing.
struct footprint {
    std::uint64_t begin = 0;            ///< the first byte
    std::uint64_t end = 0;              ///< behind the last one
    detail::shared_owner<box> shape{};  ///< null: the whole range

    /// Whether it touches nothing.
    [[nodiscard]] bool empty() const noexcept { return begin >= end; }

    /// Whether both select the same bytes by the same object: no, if that is not seen.
    friend bool operator==(const footprint&, const footprint&) = default;
};

/// One dimension of a strided footprint.
struct level {
    std::int64_t stride = 0;  ///< bytes from one index to the next; may be negative or 0
    std::int64_t count = 0;   ///< indices, at least 0
};

/// The footprint of a strided array: `count` indices in each dimension, `run` bytes at each, the element with all indices
/// 0 starting at byte `offset`. As simple as it can be said: a range where the bytes are one. Throws std::bad_alloc.
[[nodiscard]] WEIR_EXPORT footprint strided(std::uint64_t offset, std::span<const level> levels, std::uint64_t run);

/// What is known about whether two footprints share a byte.
enum class overlap_kind : std::uint8_t {
    none,     ///< they do not
    certain,  ///< they do
    unknown,  ///< they may: to find out would take too long
};

/// Compares the footprints where one has a shape. Exact for boxes of one parent layout (slices, rows, columns, tiles) of
/// any size; for others by a search that is bounded.
[[nodiscard]] WEIR_EXPORT overlap_kind compare_shapes(const footprint& a, const footprint& b) noexcept;
/// Whether every byte of `inner`, which is not beyond it, is in `outer`, where `outer` has a shape; false if that is not seen.
[[nodiscard]] WEIR_EXPORT bool covers_with_shape(const footprint& outer, const footprint& inner) noexcept;

/// Whether the two share a byte. Exact for ranges.
[[nodiscard]] inline overlap_kind compare(const footprint& a, const footprint& b) noexcept {
    if (std::max(a.begin, b.begin) >= std::min(a.end, b.end)) {
        return overlap_kind::none;
    }
    return a.shape || b.shape ? compare_shapes(a, b) : overlap_kind::certain;
}

/// Whether the two may share a byte.
[[nodiscard]] inline bool overlap(const footprint& a, const footprint& b) noexcept {
    return compare(a, b) != overlap_kind::none;
}

/// Whether every byte of `inner` is in `outer`. May say no where that is hard to see, never yes by mistake.
[[nodiscard]] inline bool covers(const footprint& outer, const footprint& inner) noexcept {
    if (inner.empty()) {
        return true;
    }
    if (inner.begin < outer.begin || outer.end < inner.end) {
        return false;
    }
    return !outer.shape || covers_with_shape(outer, inner);
}

/// Gives `to` the shape of `from`: apart from where the two are ranges, as nearly always.
[[gnu::noinline]] inline void set_shape(footprint& to, const footprint& from) noexcept { to.shape = from.shape; }

/// The smallest range that covers both.
[[nodiscard]] inline footprint hull(const footprint& a, const footprint& b) noexcept {
    if (a.empty()) {
        return b;
    }
    if (b.empty()) {
        return a;
    }
    return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

}  // namespace weir::order
