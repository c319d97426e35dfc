#pragma once

#include <cstddef>
#include <cstdint>

#include "frontier/small_vector.hpp"
#include "weir/dtype.hpp"

namespace weir::calls {

/// One dimension in which elements are copied: longer sources are cut, shorter ones filled up with zeros. Strides are in
/// elements of that side.
struct filled_dimension {
    std::int64_t from_n = 0;
    std::int64_t to_n = 0;  ///< elements written
    std::int64_t from_stride = 0;
    std::int64_t to_stride = 0;
};

/// Copies elements to a place with more, or fewer, of them in each dimension; real ones become complex if `to` is
/// complex. Both types are real or complex and have the same precision.
struct filling {
    dtype from = dtype::float64;
    dtype to = dtype::float64;
    detail::small_vector<filled_dimension, 3> dimensions;  ///< outermost first; at least one

    /// Reads `source`, writes `target`. They must not overlap.
    void run(const std::byte* source, std::byte* target) const;
};

/// One dimension of numbers of a real type. Strides are in numbers.
struct number_dimension {
    std::int64_t n = 0;
    std::int64_t stride = 0;
};

/// Multiplies all numbers of an array by a factor; a complex element is two numbers.
struct scaling {
    bool double_precision = true;
    double factor = 1;
    detail::small_vector<number_dimension, 3> dimensions;  ///< outermost first; at least one, unless the factor is 1

    void run(std::byte* numbers) const noexcept;
};

}  // namespace weir::calls
