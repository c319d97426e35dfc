#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "weir/dtype.hpp"
#include "weir/shape.hpp"

namespace weir::layout {

/// One number for each dimension, while a layout is computed.
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

/// The unit of an array's strides: `item` units are one element. Units are bytes, or bits where elements are not whole bytes.
[[nodiscard]] inline std::size_t stride_item(dtype type) noexcept {
    return has_whole_bytes(type) ? bits_of(type) / 8 : bits_of(type);
}

/// The strides, in bytes, of packed elements in C order.
[[nodiscard]] axes packed_strides(std::span<const std::int64_t> extents, std::size_t item) noexcept;

/// Whether elements with these strides lie one after the other in C order. Strides of extents below 2 do not matter.
[[nodiscard]] bool is_packed(std::span<const std::int64_t> extents, std::span<const std::int64_t> strides,
                             std::size_t item) noexcept;

/// `axis`, counted from the end if it is negative. Throws argument_error if there is no such axis.
[[nodiscard]] std::size_t axis_of(std::int64_t axis, const shape& extents);

}  // namespace weir::layout
