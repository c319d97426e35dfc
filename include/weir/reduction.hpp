// Sums, extremes and means along the axes of arrays. Layer: array.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "weir/array.hpp"
#include "weir/export.hpp"
#include "weir/launch.hpp"

namespace weir {

/// Which axes a reduction goes along.
struct along {
    /// All axes.
    along() = default;
    /// @{
    /// These axes.
    along(std::int64_t axis)
        : axes(std::vector<std::int64_t>{axis}) {}  // NOLINT(google-explicit-constructor): one axis is the common case
    along(std::initializer_list<std::int64_t> several) : axes(std::vector<std::int64_t>(several)) {}
    explicit along(std::vector<std::int64_t> several) : axes(std::move(several)) {}
    /// @}

    std::optional<std::vector<std::int64_t>> axes;  ///< nothing: all of them; negative ones count from the end
    bool keep = false;                              ///< reduced axes stay, with the extent 1
};

/// What becomes of the elements along the axes.
enum class reduction : std::uint8_t {
    sum,   ///< of bool and integers: int64, of unsigned integers uint64; else in the elements' type; of none: 0
    min,   ///< complex numbers by their real parts first; NaN wins; of none: argument_error
    max,   ///< likewise
    mean,  ///< of bool and integers: float64; else in the elements' type; of none: NaN
};

/// A new array with the results, without the axes. Sums of floating-point numbers are taken in float64 and pairwise, so
/// that errors grow with the logarithm of the number of elements. One operation, which reads `x` and never blocks.
/// Throws argument_error: no such axis, an axis twice, an extreme of no elements, an array of another device.
[[nodiscard]] WEIR_EXPORT array reduce(const on& where, reduction what, const array& x, const along& axes = {});

/// @{
/// `reduce` by name: the same rules and errors.
[[nodiscard]] inline array sum(const on& where, const array& x, const along& axes = {}) {
    return reduce(where, reduction::sum, x, axes);
}
[[nodiscard]] inline array min(const on& where, const array& x, const along& axes = {}) {
    return reduce(where, reduction::min, x, axes);
}
[[nodiscard]] inline array max(const on& where, const array& x, const along& axes = {}) {
    return reduce(where, reduction::max, x, axes);
}
[[nodiscard]] inline array mean(const on& where, const array& x, const along& axes = {}) {
    return reduce(where, reduction::mean, x, axes);
}
/// @}

}  // namespace weir
