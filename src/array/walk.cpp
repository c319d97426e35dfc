#include "array/walk.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "weir/shape.hpp"

namespace weir::walk {

namespace {

/// Not initialised: there is room for many dimensions, and usually there are few.
template <std::size_t Most>
struct dimension {
    std::int64_t extent;
    std::array<std::int64_t, Most> strides;
};

std::uint64_t magnitude(std::int64_t stride) noexcept {
    return stride < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(stride) : static_cast<std::uint64_t>(stride);
}

/// Whether the loop over `a` is outside of the loop over `b`: `a` has the larger stride in the first operand in which they differ.
template <std::size_t Most>
bool is_outside(const dimension<Most>& a, const dimension<Most>& b) noexcept {
    for (std::size_t i = 0; i < Most; ++i) {
        if (magnitude(a.strides[i]) != magnitude(b.strides[i])) {
            return magnitude(a.strides[i]) > magnitude(b.strides[i]);
        }
    }
    return false;
}

/// Whether one step of `outer` continues where the last step of `inner` ends, in all operands.
template <std::size_t Most>
bool continues(const dimension<Most>& outer, const dimension<Most>& inner) noexcept {
    for (std::size_t i = 0; i < Most; ++i) {
        if (outer.strides[i] != inner.strides[i] * inner.extent) {
            return false;
        }
    }
    return true;
}

template <std::size_t Item>
void copy_row(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
              std::int64_t count) noexcept {
    for (std::int64_t i = 0; i < count; ++i) {
        std::memcpy(to + i * to_stride, from + i * from_stride, Item);
    }
}

/// Copies one element to many.
template <std::size_t Item>
void fill_row(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t count) noexcept {
    std::array<std::byte, Item> element;
    std::memcpy(element.data(), from, Item);
    if (to_stride == static_cast<std::int64_t>(Item)) {
        for (std::int64_t i = 0; i < count; ++i) {
            std::memcpy(to + i * static_cast<std::int64_t>(Item), element.data(), Item);
        }
        return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
        std::memcpy(to + i * to_stride, element.data(), Item);
    }
}

template <std::size_t Item>
void copy_rows(const grid& to, const grid& from, std::int64_t rows, std::int64_t columns) noexcept {
    constexpr auto item = static_cast<std::int64_t>(Item);
    // If the source has smaller steps between rows than within them, copy in strips: a cache line is then used up
    // before it is evicted.
    const bool across = magnitude(from.row_stride) < magnitude(from.column_stride);
    const std::int64_t strip = across ? 64 : columns;
    for (std::int64_t column = 0; column < columns; column += strip) {
        const std::int64_t count = std::min(strip, columns - column);
        for (std::int64_t row = 0; row < rows; ++row) {
            std::byte* const target = to.first + row * to.row_stride + column * to.column_stride;
            const std::byte* const source = from.first + row * from.row_stride + column * from.column_stride;
            // The most frequent strides are compile-time constants.
            if (to.column_stride == item && from.column_stride == item) {
                std::memcpy(target, source, static_cast<std::size_t>(count) * Item);
            } else if (from.column_stride == 0) {
                fill_row<Item>(target, to.column_stride, source, count);
            } else if (to.column_stride == item) {
                copy_row<Item>(target, item, source, from.column_stride, count);
            } else if (from.column_stride == item) {
                copy_row<Item>(target, to.column_stride, source, item, count);
            } else {
                copy_row<Item>(target, to.column_stride, source, from.column_stride, count);
            }
        }
    }
}

}  // namespace

template <std::size_t Most>
basic_plan<Most>::basic_plan(std::span<const std::int64_t> extents, std::span<const operand> operands,
                             order_of_elements wanted)
    : operands_(operands.size()) {
    std::array<dimension<Most>, shape::most> all;  // NOLINT(cppcoreguidelines-pro-type-member-init): see `dimension`
    std::size_t count = 0;
    for (std::size_t i = 0; i < operands_; ++i) {
        first_[i] = operands[i].first;
    }
    for (const std::int64_t extent : extents) {
        elements_ *= extent;
    }
    if (elements_ == 0) {
        return;
    }
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
        if (extents[axis] < 2) {
            continue;
        }
        dimension<Most>& d = all[count++];
        d = {extents[axis], {}};
        const bool backwards = wanted == order_of_elements::any && operands[0].strides[axis] < 0;
        for (std::size_t i = 0; i < operands_; ++i) {
            const std::int64_t stride = operands[i].strides[axis];
            first_[i] += backwards ? (d.extent - 1) * stride : 0;
            d.strides[i] = backwards ? -stride : stride;
        }
    }
    // An insertion sort: stable, and fast for few.
    for (std::size_t i = 1; wanted == order_of_elements::any && i < count; ++i) {
        auto* const next = all.data() + i;
        std::rotate(std::upper_bound(all.data(), next, *next, is_outside<Most>), next, next + 1);
    }
    for (std::size_t i = 0; i < count; ++i) {
        dimension<Most> d = all[i];
        if (count_ > 0 && continues(all[count_ - 1], d)) {
            d.extent *= all[count_ - 1].extent;
            --count_;
        }
        all[count_++] = d;
    }
    numbers_.reserve(at(count_));
    for (std::size_t i = 0; i < count_; ++i) {
        numbers_.push_back(all[i].extent);
        numbers_.append(all[i].strides.data(), all[i].strides.data() + operands_);
    }
}

template class basic_plan<4>;
template class basic_plan<16>;

void copy_grid(const grid& to, const grid& from, std::int64_t rows, std::int64_t columns, std::size_t item) noexcept {
    switch (item) {
        case 1:
            return copy_rows<1>(to, from, rows, columns);
        case 2:
            return copy_rows<2>(to, from, rows, columns);
        case 4:
            return copy_rows<4>(to, from, rows, columns);
        case 8:
            return copy_rows<8>(to, from, rows, columns);
        default:
            return copy_rows<16>(to, from, rows, columns);
    }
}

void copy_elements(const plan& both, std::size_t item) {
    both.for_each_chunk(std::numeric_limits<std::int64_t>::max(),
                        [&](const plan::pointers& at, std::int64_t rows, std::int64_t columns) {
                            copy_grid({at[0], both.row_stride(0), both.column_stride(0)},
                                      {at[1], both.row_stride(1), both.column_stride(1)}, rows, columns, item);
                        });
}

}  // namespace weir::walk
