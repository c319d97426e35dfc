// What `array::operator[]` takes. Layer: array.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <variant>

namespace weir {

/// NumPy's `start:stop:step`: negative numbers count from the end, what is beyond an end is cut off, what is left out is
/// everything. `slice{1, 5}`, `slice{{}, {}, -1}`.
struct slice {
    std::optional<std::int64_t> start{};  ///< the first index
    std::optional<std::int64_t> stop{};   ///< behind the last index; for a negative step before it
    std::int64_t step = 1;                ///< not 0
};

/// A new dimension of extent 1.
struct new_axis_t {};
inline constexpr new_axis_t new_axis{};  ///< what one writes in an index

/// As many whole dimensions as are not named.
struct ellipsis_t {};
inline constexpr ellipsis_t ellipsis{};  ///< what one writes in an index

/// One part of an index: an integer (drops the dimension; negative ones count from the end), a slice, `new_axis`,
/// `ellipsis`.
class index_term {
public:
    /// What it may be.
    using any = std::variant<std::int64_t, slice, new_axis_t, ellipsis_t>;

    /// @{
    /// From what stands in an index.
    template <std::integral Integer>
    index_term(Integer at) noexcept : term_(static_cast<std::int64_t>(at)) {}  // NOLINT(google-explicit-constructor)
    index_term(const slice& part) noexcept : term_(part) {}                    // NOLINT(google-explicit-constructor)
    index_term(new_axis_t one) noexcept : term_(one) {}                        // NOLINT(google-explicit-constructor)
    index_term(ellipsis_t rest) noexcept : term_(rest) {}                      // NOLINT(google-explicit-constructor)
    /// @}

    /// Which of them it is.
    [[nodiscard]] const any& term() const noexcept { return term_; }

private:
    any term_;
};

}  // namespace weir
