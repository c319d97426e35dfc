// The arguments of `array::operator[]`. Layer: array.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "weir/detail/integer.hpp"

namespace weir {

/// NumPy's `start:stop:step`: negative numbers count from the end, numbers beyond an end are clamped, and an omitted number means the
/// whole. `slice{1, 5}`, `slice{{}, {}, -1}`.
struct slice {
    std::optional<std::int64_t> start{};  ///< the first index
    std::optional<std::int64_t> stop{};   ///< one past the last index; for a negative step, one before it
    std::int64_t step = 1;                ///< not 0
};

/// A new dimension of extent 1.
struct new_axis_t {};
inline constexpr new_axis_t new_axis{};  ///< the constant for use in an index

/// Stands for as many whole dimensions as the index does not name.
struct ellipsis_t {};
inline constexpr ellipsis_t ellipsis{};  ///< the constant for use in an index

/// One part of an index: an integer (drops the dimension; negative ones count from the end), a slice, `new_axis`,
/// `ellipsis`.
class index_term {
public:
    /// The possible kinds of terms.
    using any = std::variant<std::int64_t, slice, new_axis_t, ellipsis_t>;

    /// @{
    /// From a term of an index.
    template <detail::integer Integer>
    index_term(Integer at) noexcept : term_(static_cast<std::int64_t>(at)) {}  // NOLINT(google-explicit-constructor)
    index_term(const slice& part) noexcept : term_(part) {}                    // NOLINT(google-explicit-constructor)
    index_term(new_axis_t one) noexcept : term_(one) {}                        // NOLINT(google-explicit-constructor)
    index_term(ellipsis_t rest) noexcept : term_(rest) {}                      // NOLINT(google-explicit-constructor)
    /// @}

    /// The term.
    [[nodiscard]] const any& term() const noexcept { return term_; }

private:
    any term_;
};

}  // namespace weir
