// What part of a resource's memory an operation touches, and how. Pure values; layer: order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "weir/access.hpp"
#include "weir/detail/intrusive.hpp"
#include "weir/export.hpp"

namespace weir::order {

using weir::access_mode;

class box;

/// The bytes that one access may touch, relative to the start of the tracked memory: the half-open range [begin, end), or, with a
/// `shape`, the parts of it that the shape selects (rule O3). An empty footprint touches nothing.
struct footprint {
    std::uint64_t begin = 0;            ///< the first byte
    std::uint64_t end = 0;              ///< the end: one past the last byte
    detail::shared_owner<box> shape{};  ///< null: the whole range

    /// Whether it touches nothing.
    [[nodiscard]] bool empty() const noexcept { return begin >= end; }

    /// Whether both have the same range and the same shape object. False if two shape objects select the same bytes.
    friend bool operator==(const footprint&, const footprint&) = default;
};

/// One dimension of a strided footprint.
struct level {
    std::int64_t stride = 0;  ///< bytes from one index to the next; may be negative or 0
    std::int64_t count = 0;   ///< indices, at least 0
};

/// The footprint of a strided array: `count` indices in each dimension, `run` bytes at each, the element with all indices 0 at byte
/// `offset`. Returns the simplest form: a range if the bytes are contiguous. Throws std::bad_alloc.
[[nodiscard]] WEIR_EXPORT footprint strided(std::uint64_t offset, std::span<const level> levels, std::uint64_t run);

/// What is known about whether two footprints share a byte.
enum class overlap_kind : std::uint8_t {
    none,     ///< they do not
    certain,  ///< they do
    unknown,  ///< they may: finding out would take too long
};

/// Compares two footprints of which one has a shape. Exact for boxes of one parent layout (slices, rows, columns, tiles) of any size;
/// for others it uses a bounded search.
[[nodiscard]] WEIR_EXPORT overlap_kind compare_shapes(const footprint& a, const footprint& b) noexcept;
/// Whether every byte of `inner`, which lies within the range of `outer`, is in `outer`, which has a shape; false if that is not found.
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

/// Whether every byte of `inner` is in `outer`. May return false if that is hard to find out, but never true by mistake.
[[nodiscard]] inline bool covers(const footprint& outer, const footprint& inner) noexcept {
    if (inner.empty()) {
        return true;
    }
    if (inner.begin < outer.begin || outer.end < inner.end) {
        return false;
    }
    return !outer.shape || covers_with_shape(outer, inner);
}

/// Gives `to` the shape of `from`. Out of line, because the footprints are nearly always ranges without shapes.
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
