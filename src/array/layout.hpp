#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "weir/shape.hpp"

namespace weir::layout {

/// One number for each dimension, while a layout is worked out.
class axes {
public:
    [[nodiscard]] std::int64_t& operator[](std::size_t axis) noexcept { return values_[axis]; }
    [[nodiscard]] const std::int64_t& operator[](std::size_t axis) const noexcept { return values_[axis]; }
    [[nodiscard]] std::span<const std::int64_t> first(std::size_t count) const noexcept {
        return std::span(values_).first(count);
    }

private:
    std::array<std::int64_t, shape::most> values_{};
};

/// The strides, in bytes, of elements that lie one after the other in C order.
[[nodiscard]] axes packed_strides(std::span<const std::int64_t> extents, std::size_t item) noexcept;

/// Whether elements with these strides lie one after the other in C order. Strides of extents below 2 do not matter.
[[nodiscard]] bool is_packed(std::span<const std::int64_t> extents, std::span<const std::int64_t> strides,
                             std::size_t item) noexcept;

/// `axis`, counted from the end if it is negative. Throws argument_error if there is none such.
[[nodiscard]] std::size_t axis_of(std::int64_t axis, const shape& extents);

}  // namespace weir::layout
