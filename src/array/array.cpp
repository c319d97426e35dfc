#include "weir/array.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "array/cuda/fetch.hpp"
#include "array/layout.hpp"
#include "array/walk.hpp"
#include "memory/access.hpp"
#include "order/box.hpp"
#include "weir/detail/host_copy.hpp"
#include "weir/error.hpp"

namespace weir {

namespace {

std::string range_text(std::int64_t first, std::int64_t last) {
    return "[" + std::to_string(first) + ", " + std::to_string(last) + ")";
}

std::string described(dtype type, const shape& extents) {
    return "an array of " + std::string(name_of(type)) + " with the shape " + extents.to_string();
}

/// The bytes from the first element's to the last's, counted from the element with all indices 0.
struct reach {
    std::int64_t below = 0;
    std::int64_t above = 0;
    bool possible = true;  ///< whether numbers of 64 bits are enough
};

reach reach_of(const shape& extents, std::span<const std::int64_t> strides, dtype type) {
    reach found;
    found.above = static_cast<std::int64_t>(size_of(type));
    for (std::size_t axis = 0; axis < strides.size(); ++axis) {
        std::int64_t length = 0;
        std::int64_t& side = strides[axis] < 0 ? found.below : found.above;
        found.possible = found.possible && !__builtin_mul_overflow(extents[axis] - 1, strides[axis], &length) &&
                         !__builtin_add_overflow(side, length, &side);
    }
    return found;
}

/// Memory of the pool begins at an address that suits all types, memory of others anywhere.
void expect_aligned(const buffer& memory, dtype type, const shape& extents, std::size_t offset) {
    const auto begins = reinterpret_cast<std::uintptr_t>(memory.device_data()) + offset;
    if ((begins & (alignment_of(type) - 1)) != 0) {
        throw argument_error(described(type, extents) + " cannot begin at byte " + std::to_string(offset) +
                             ": its address must be a multiple of " + std::to_string(alignment_of(type)));
    }
}

detail::axis_list strides_in_c_order(const shape& extents, dtype type) {
    if (extents.dimensions() == 1) {
        return detail::axis_list(static_cast<std::int64_t>(size_of(type)));
    }
    return detail::axis_list(layout::packed_strides(extents.extents(), size_of(type)).first(extents.dimensions()));
}

}  // namespace

array::array(weir::buffer memory, weir::dtype type, const weir::shape& extents, std::size_t offset)
    : buffer_(std::move(memory)),
      shape_(extents),
      strides_(strides_in_c_order(extents, type)),
      dtype_(type),
      offset_(offset) {
    const std::size_t needed = nbytes();
    const std::size_t there = buffer_.bytes();
    if (offset > there || needed > there - offset) {
        throw argument_error(described(type, extents) + " needs " + std::to_string(needed) + " bytes from byte " +
                             std::to_string(offset) + " on; the buffer has " + std::to_string(there) +
                             ": make a larger buffer or a smaller array");
    }
    expect_aligned(buffer_, type, extents, offset);
    footprint_ = {offset_, offset_ + needed};
    find_elements();
}

array::array(weir::buffer memory, weir::dtype type, const weir::shape& extents, std::span<const std::int64_t> strides,
             std::size_t offset)
    : buffer_(std::move(memory)), shape_(extents), strides_(strides), dtype_(type), offset_(offset) {
    if (strides.size() != extents.dimensions()) {
        throw argument_error(described(type, extents) + " and " + std::to_string(strides.size()) +
                             " strides: give one for each dimension");
    }
    const auto item = static_cast<std::int64_t>(size_of(type));
    const bool empty = size() == 0;
    for (std::size_t axis = 0; axis < strides.size(); ++axis) {
        if (extents[axis] > 1 && !empty && strides[axis] % item != 0) {
            throw argument_error(described(type, extents) + " with a stride of " + std::to_string(strides[axis]) +
                                 " bytes: strides must be multiples of the element's size, " + std::to_string(item));
        }
    }
    const reach around = empty ? reach{} : reach_of(extents, strides, type);
    const bool fits = around.possible && offset <= buffer_.bytes() &&
                      std::uint64_t{0} - static_cast<std::uint64_t>(around.below) <= offset &&
                      static_cast<std::uint64_t>(around.above) <= buffer_.bytes() - offset;
    if (!fits) {
        throw argument_error(described(type, extents) + " and these strides goes beyond the " +
                             std::to_string(buffer_.bytes()) + " bytes of its buffer, from byte " +
                             std::to_string(offset) + " on: check shape, strides and offset");
    }
    expect_aligned(buffer_, type, extents, offset);
    find_footprint();
}

void array::find_elements() noexcept {
    weir::buffer::tracked_memory memory = buffer_.tracked();
    memory.device_data += offset_;
    elements_ = detail::elements_memory(memory);
}

void array::find_footprint() {
    find_elements();
    contiguous_ = layout::is_packed(shape_.extents(), strides(), size_of(dtype_));
    if (contiguous_) {
        footprint_ = {offset_, offset_ + nbytes()};
        return;
    }
    std::array<order::level, weir::shape::most> levels;
    for (std::size_t axis = 0; axis < dimensions(); ++axis) {
        levels[axis] = {strides()[axis], shape_[axis]};
    }
    footprint_ = order::strided(offset_, std::span(levels).first(dimensions()), size_of(dtype_));
}

array array::with_layout(weir::shape extents, std::span<const std::int64_t> strides, std::int64_t moved) const {
    array made(*this);
    made.shape_ = std::move(extents);
    made.strides_ = detail::axis_list(strides);
    // Nothing has no place: it stays where there is memory.
    made.offset_ = made.size() == 0 ? offset_ : static_cast<std::size_t>(static_cast<std::int64_t>(offset_) + moved);
    made.find_footprint();
    return made;
}

bool array::has_own_elements() const noexcept {
    if (contiguous_) {
        return true;
    }
    for (std::size_t axis = 0; axis < dimensions() && size() != 0; ++axis) {
        if (strides()[axis] == 0 && shape_[axis] > 1) {
            return false;
        }
    }
    return !footprint_.shape || footprint_.shape->exact();
}

array array::slice(std::int64_t first, std::int64_t last) const {
    if (dimensions() == 0) {
        throw argument_error("slice " + range_text(first, last) +
                             " of an array without dimensions: reshape it to (1,) first");
    }
    const std::int64_t extent = shape_[0];
    if (first < 0 || last < first || last > extent) {
        throw argument_error("slice " + range_text(first, last) + " of an array of the shape " + shape_.to_string() +
                             ": the range must lie within " + range_text(0, extent));
    }
    return (*this)[weir::slice{first, last}];
}

bool array::ready() const {
    runtime::resource* const memory = buffer_.resource();
    return memory == nullptr || memory::nothing_pending(*memory, footprint(), order::access_mode::read);
}

std::string array::to_string() const {
    return "<weir.array " + std::string(name_of(dtype_)) + " " + shape_.to_string() + " on " + device().name() + ">";
}

void array::refuse_type(weir::dtype wanted) const {
    throw argument_type_error("the array's elements are " + std::string(name_of(dtype_)) + ", not " +
                              std::string(name_of(wanted)) + ": ask for a view of its own type");
}

void array::refuse_order() const {
    throw argument_error("the elements of " + to_string() +
                         " do not lie in C order: ask for strided<T, Rank>(), or make a copy with contiguous(on, x)");
}

void array::expect_dimensions(std::size_t wanted) const {
    if (wanted != dimensions()) {
        throw argument_error(to_string() + " has " + std::to_string(dimensions()) + " dimensions, not " +
                             std::to_string(wanted) + ": ask for as many as it has, or reshape it");
    }
}

namespace detail {

namespace {

/// Copies the elements of `of` to the host in C order. Nothing writes them meanwhile.
void pack(const array& of, std::byte* to) {
    const bool reachable = of.buffer().host_reachable();
    if (!reachable && of.is_contiguous()) {
        of.buffer().fetch(to, of.device_data(), of.nbytes());
        return;
    }
    const std::size_t item = size_of(of.dtype());
    const layout::axes strides = layout::packed_strides(of.shape().extents(), item);
    const walk::operand operands[] = {{to, strides.first(of.dimensions())},
                                      {reachable ? of.data() : of.device_data(), of.strides()}};
    const walk::plan both(of.shape().extents(), operands);
    if (reachable) {
        walk::copy_elements(both, item);
        return;
    }
    if (array_kernels::fetch(of, both)) {
        return;
    }
    // Run by run: what lies between the elements may be written at this moment, and is not waited for.
    const bool runs = both.column_stride(1) == static_cast<std::int64_t>(item);
    both.for_each_piece(runs ? std::numeric_limits<std::int64_t>::max() : 1,
                        [&](const walk::plan::pointers& at, std::int64_t rows, std::int64_t columns) {
                            for (std::int64_t row = 0; row < rows; ++row) {
                                of.buffer().fetch(at[0] + row * both.row_stride(0), at[1] + row * both.row_stride(1),
                                                  static_cast<std::size_t>(columns) * item);
                            }
                        });
}

}  // namespace

void copy_to_host(const array& of, std::byte* to, source_location where) {
    const host_access access(of.buffer(), of.footprint(), order::access_mode::read, where, true);
    pack(of, to);
}

host_window::host_window(const array& of, order::access_mode mode, source_location where) : data_(of.data()) {
    const bool reachable = of.buffer().host_reachable();
    if (!reachable && mode == order::access_mode::write) {
        throw argument_error(
            "the host cannot change " + of.to_string() +
            " in place: write to it with weir::copy_from_host, or with weir::copy from an array on cpu");
    }
    const bool copies = !reachable || !of.is_contiguous();
    access_.emplace(of.buffer(), of.footprint(), mode, where, copies);
    if (copies) {
        copy_ = std::make_unique_for_overwrite<std::byte[]>(of.nbytes());
        pack(of, copy_.get());
        data_ = copy_.get();
        access_.reset();
    }
}

}  // namespace detail

}  // namespace weir
