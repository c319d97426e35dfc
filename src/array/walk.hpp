#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "frontier/small_vector.hpp"

namespace weir::walk {

/// One of the arrays that are visited together: the address of its element with all indices 0, and its strides in bytes.
struct operand {
    std::byte* first = nullptr;
    std::span<const std::int64_t> strides;
};

/// The order in which a plan visits elements.
enum class order_of_elements : std::uint8_t {
    any,  ///< one that suits the first operand: its smallest stride is innermost
    c,    ///< the last index changes first
};

/// How to visit up to `Most` arrays of one shape at once. Dimensions that form one progression in all operands are merged. Owns
/// no memory of arrays.
template <std::size_t Most>
class basic_plan {
public:
    static constexpr std::size_t most_operands = Most;
    using pointers = std::array<std::byte*, most_operands>;

    /// Throws std::bad_alloc (for more than a few dimensions).
    basic_plan(std::span<const std::int64_t> extents, std::span<const operand> operands,
               order_of_elements wanted = order_of_elements::any);

    [[nodiscard]] std::int64_t elements() const noexcept { return elements_; }
    /// Bytes between columns (the innermost dimension), and between rows (the next one). 0 where there is no such dimension.
    [[nodiscard]] std::int64_t column_stride(std::size_t operand) const noexcept {
        return count_ > 0 ? stride(count_ - 1, operand) : 0;
    }
    [[nodiscard]] std::int64_t row_stride(std::size_t operand) const noexcept {
        return count_ > 1 ? stride(count_ - 2, operand) : 0;
    }
    /// The dimensions that are left, outermost first, and the address of the first element of an operand in this order.
    [[nodiscard]] std::size_t dimensions() const noexcept { return count_; }
    [[nodiscard]] std::int64_t extent(std::size_t dimension) const noexcept { return numbers_[at(dimension)]; }
    [[nodiscard]] std::int64_t stride(std::size_t dimension, std::size_t operand) const noexcept {
        return numbers_[at(dimension) + 1 + operand];
    }
    [[nodiscard]] std::byte* first(std::size_t operand) const noexcept { return first_[operand]; }
    /// Gives an operand another address, with the same strides.
    void move_to(std::size_t operand, std::byte* first) noexcept { first_[operand] = first; }

    /// Calls `visit(pointers, rows, columns)` for two-dimensional chunks that make up the whole, each of at most `most`
    /// elements.
    template <class Visit>
    void for_each_chunk(std::int64_t most, Visit&& visit) const;

private:
    [[nodiscard]] std::size_t at(std::size_t dimension) const noexcept { return dimension * (operands_ + 1); }

    pointers first_{};
    std::int64_t elements_ = 1;
    std::size_t operands_ = 0;
    std::size_t count_ = 0;                           ///< dimensions, outermost first
    detail::small_vector<std::int64_t, 20> numbers_;  ///< for each: the extent, and the stride of each operand
};

/// Enough for most operations.
using plan = basic_plan<4>;
/// For operations that a program describes.
using large_plan = basic_plan<16>;
extern template class basic_plan<4>;
extern template class basic_plan<16>;

template <std::size_t Most>
template <class Visit>
void basic_plan<Most>::for_each_chunk(std::int64_t most, Visit&& visit) const {
    if (elements_ == 0) {
        return;
    }
    const std::int64_t columns = count_ > 0 ? extent(count_ - 1) : 1;
    const std::int64_t rows = count_ > 1 ? extent(count_ - 2) : 1;
    const std::int64_t rows_at_once = std::max<std::int64_t>(1, most / columns);
    const std::size_t outer = count_ > 2 ? count_ - 2 : 0;
    const auto advance = [&](pointers& all, std::int64_t by, auto&& stride_of) {
        for (std::size_t i = 0; i < operands_; ++i) {
            all[i] += by * stride_of(i);
        }
    };
    detail::small_vector<std::int64_t, 8> index;
    for (std::size_t i = 0; i < outer; ++i) {
        index.push_back(0);
    }
    pointers block = first_;
    for (;;) {
        for (std::int64_t row = 0; row < rows; row += rows_at_once) {
            for (std::int64_t column = 0; column < columns; column += most) {
                pointers chunk = block;
                advance(chunk, row, [&](std::size_t i) { return row_stride(i); });
                advance(chunk, column, [&](std::size_t i) { return column_stride(i); });
                visit(chunk, std::min(rows_at_once, rows - row), std::min(most, columns - column));
            }
        }
        std::size_t d = outer;
        for (; d > 0; --d) {
            if (++index[d - 1] < extent(d - 1)) {
                advance(block, 1, [&](std::size_t i) { return stride(d - 1, i); });
                break;
            }
            advance(block, 1 - extent(d - 1), [&](std::size_t i) { return stride(d - 1, i); });
            index[d - 1] = 0;
        }
        if (d == 0) {
            return;
        }
    }
}

/// Elements in rows and columns.
struct grid {
    std::byte* first = nullptr;
    std::int64_t row_stride = 0;
    std::int64_t column_stride = 0;
};

/// Copies `rows` times `columns` elements of `item` bytes (a power of two up to 16). The grids must not overlap.
void copy_grid(const grid& to, const grid& from, std::int64_t rows, std::int64_t columns, std::size_t item) noexcept;

/// Whether the elements of a grid lie one after the other.
[[nodiscard]] inline bool is_packed(const grid& g, std::int64_t rows, std::int64_t columns, std::size_t item) noexcept {
    const auto size = static_cast<std::int64_t>(item);
    return (columns == 1 || g.column_stride == size) && (rows == 1 || g.row_stride == columns * size);
}

/// The grid of elements that lie one after the other from `first` on.
[[nodiscard]] inline grid packed(std::byte* first, std::int64_t columns, std::size_t item) noexcept {
    const auto size = static_cast<std::int64_t>(item);
    return {first, columns * size, size};
}

/// The elements of a grid one after the other: in place if they are packed, else copied to `room`.
[[nodiscard]] inline const std::byte* gather(const grid& from, std::int64_t rows, std::int64_t columns,
                                             std::size_t item, std::byte* room) noexcept {
    if (is_packed(from, rows, columns, item)) {
        return from.first;
    }
    copy_grid(packed(room, columns, item), from, rows, columns, item);
    return room;
}

/// Copies each element of operand 1 to operand 0; they must not overlap.
void copy_elements(const plan& both, std::size_t item);

}  // namespace weir::walk
