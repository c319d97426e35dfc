#pragma once

#include <cstddef>
#include <cstdint>

#include "weir/dtype.hpp"

namespace weir::calls {

/// Copies rows of some length to rows of another one: longer ones are cut, shorter ones filled up with zeros, real ones
/// become complex where `to` is complex. Both types have the same precision.
struct rows {
    dtype from = dtype::float64;
    dtype to = dtype::float64;
    std::int64_t count = 0;
    std::int64_t from_length = 0;
    std::int64_t to_length = 0;    ///< elements written in each row
    std::int64_t to_distance = 0;  ///< elements from row to row

    /// Reads count * from_length elements at `source`, writes `target`. They must not overlap.
    void fill(const std::byte* source, std::byte* target) const;
};

/// Multiplies `count` numbers of a real type by `factor`.
void scale(dtype type, std::byte* numbers, std::int64_t count, double factor) noexcept;

}  // namespace weir::calls
