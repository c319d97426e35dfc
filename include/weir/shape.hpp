// The extents of arrays. Layer: array.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weir/detail/integer.hpp"
#include "weir/export.hpp"

namespace weir {

namespace detail {

/// One number for each dimension; immutable. Up to `in_place` numbers are stored in place; copies of longer lists share them.
class axis_list {
public:
    static constexpr std::size_t in_place = 4;

    axis_list() = default;
    /// A list of one axis.
    explicit axis_list(std::int64_t value) noexcept : few_{value}, count_(1) {}
    /// Throws std::bad_alloc.
    explicit axis_list(std::span<const std::int64_t> values) : count_(values.size()) {
        if (count_ > in_place) {
            const auto made = std::make_shared_for_overwrite<std::int64_t[]>(count_);
            std::copy(values.begin(), values.end(), made.get());
            many_ = made;
        } else {
            for (std::size_t axis = 0; axis < in_place; ++axis) {  // a function call would take longer
                few_[axis] = axis < count_ ? values[axis] : 0;
            }
        }
    }

    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    [[nodiscard]] std::int64_t operator[](std::size_t axis) const noexcept { return values()[axis]; }
    [[nodiscard]] std::span<const std::int64_t> values() const noexcept {
        return {count_ > in_place ? many_.get() : few_.data(), count_};
    }
    friend bool operator==(const axis_list& a, const axis_list& b) noexcept {
        if (a.count_ > in_place) {
            return std::equal(a.values().begin(), a.values().end(), b.values().begin(), b.values().end());
        }
        // Unused entries are 0.
        return a.count_ == b.count_ && a.few_[0] == b.few_[0] && a.few_[1] == b.few_[1] && a.few_[2] == b.few_[2] &&
               a.few_[3] == b.few_[3];
    }

private:
    std::array<std::int64_t, in_place> few_{};  ///< unused entries are 0
    std::shared_ptr<const std::int64_t[]> many_;
    std::size_t count_ = 0;
};

/// The number of elements of the largest type that a pointer difference can count.
inline constexpr std::int64_t most_elements = std::int64_t{PTRDIFF_MAX} / 16;

}  // namespace detail

/// The extents of an array, outermost first. At most `most` dimensions; an array with none is a single element. Extents are not negative.
class WEIR_EXPORT shape {
public:
    static constexpr std::size_t most = 32;  ///< dimensions

    /// No dimensions: a single element.
    shape() = default;
    /// Throws argument_error for negative extents, too many dimensions, or more elements than can be addressed.
    shape(std::initializer_list<std::int64_t> extents) : shape(std::span(extents.begin(), extents.size())) {}
    /// The same, from extents made at run time.
    explicit shape(std::span<const std::int64_t> extents);
    /// One dimension.
    template <detail::integer Integer>
    shape(Integer extent)  // NOLINT(google-explicit-constructor): one dimension is the common case
        : extents_(std::in_range<std::int64_t>(extent) ? static_cast<std::int64_t>(extent) : PTRDIFF_MAX) {
        if (extents_[0] < 0 || extents_[0] > detail::most_elements) {
            refuse();
        }
    }

    /// The number of dimensions.
    [[nodiscard]] std::size_t dimensions() const noexcept { return extents_.size(); }
    /// The extent of a dimension, which is not checked.
    [[nodiscard]] std::int64_t operator[](std::size_t axis) const noexcept { return extents_[axis]; }
    /// @{
    /// All extents. Valid as long as the shape; those of a temporary shape are a copy.
    [[nodiscard]] std::span<const std::int64_t> extents() const& noexcept { return extents_.values(); }
    [[nodiscard]] std::vector<std::int64_t> extents() const&& {
        return {extents_.values().begin(), extents_.values().end()};
    }
    /// @}
    /// The number of elements; 1 without dimensions.
    [[nodiscard]] std::int64_t elements() const noexcept {
        std::int64_t product = 1;
        for (const std::int64_t extent : extents()) {
            product *= extent;
        }
        return product;
    }
    /// "(3, 4)", as NumPy prints it.
    [[nodiscard]] std::string to_string() const;

    /// Whether both have the same extents.
    friend bool operator==(const shape&, const shape&) = default;

private:
    /// Throws argument_error, which says what is wrong with an extent, or with all of them together.
    [[noreturn]] void refuse() const;

    detail::axis_list extents_;
};

/// The shape of the result of arithmetic on operands of these shapes, by NumPy's broadcasting: counted from the last dimension, extents
/// must be equal or 1. Throws argument_error.
[[nodiscard]] WEIR_EXPORT shape broadcast_shapes(const shape& a, const shape& b);

}  // namespace weir
