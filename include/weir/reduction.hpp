// Sums, extremes and means along the axes of arrays. Layer: array.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "weir/array.hpp"
#include "weir/export.hpp"
#include "weir/on.hpp"

namespace weir {

/// The axes of a reduction.
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

    std::optional<std::vector<std::int64_t>> axes;  ///< nothing: all axes; negative numbers count from the end
    bool keep = false;                              ///< reduced axes stay, with extent 1
};

/// What is computed from the elements along the axes.
enum class reduction : std::uint8_t {
    sum,   ///< bool and integers: int64, unsigned integers: uint64; others: the elements' type; no elements: 0
    min,   ///< complex numbers by their real parts first; NaN wins; no elements: argument_error
    max,   ///< the same rules as `min`
    mean,  ///< bool and integers: float64; others: the elements' type; no elements: NaN
};

/// A new array with the results, without the reduced axes. Sums of floating-point numbers are computed in float64 and pairwise, so that
/// errors grow with the logarithm of the number of elements. One operation, which reads `x` and never blocks. Throws argument_error: no
/// such axis, an axis twice, an extreme of no elements, an array of another device.
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
