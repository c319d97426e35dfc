#include "weir/array.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "array/carried.hpp"
#include "array/cuda/fetch.hpp"
#include "array/layout.hpp"
#include "array/walk.hpp"
#include "memory/access.hpp"
#include "order/box.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/lifetime/resource.hpp"
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

/// The range of bytes from the lowest to the highest element, relative to the element with all indices 0.
struct reach {
    std::int64_t below = 0;
    std::int64_t above = 0;
    bool possible = true;  ///< whether 64-bit numbers can hold it
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

/// Memory of a pool is aligned for all types; foreign memory may begin at any address.
void expect_aligned(const buffer& memory, dtype type, const shape& extents, std::size_t offset) {
    if (bits_of(type) == 0) {
        throw argument_type_error("an element type of " + std::to_string(type.bits()) + " bits and " +
                                  std::to_string(type.lanes()) + " lanes: an array needs at least one of each");
    }
    const auto begins = reinterpret_cast<std::uintptr_t>(memory.device_data()) + offset;
    if ((begins & (alignment_of(type) - 1)) != 0) {
        throw argument_error(described(type, extents) + " cannot begin at byte " + std::to_string(offset) +
                             " of its buffer, which is the address " + std::to_string(begins) +
                             ": the address must be a multiple of " + std::to_string(alignment_of(type)) +
                             "; copy the elements in the package that made them");
    }
}

detail::axis_list strides_in_c_order(const shape& extents, dtype type) {
    const std::size_t item = layout::stride_item(type);
    if (extents.dimensions() == 1) {
        return detail::axis_list(static_cast<std::int64_t>(item));
    }
    return detail::axis_list(layout::packed_strides(extents.extents(), item).first(extents.dimensions()));
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

array::array(detail::passkey key, weir::dtype type, const weir::shape& extents, const weir::device& on)
    : array(weir::buffer(), type, extents) {
    place_ = &on.state(key);  // nothing else says on which device to compute with the array
}

array::array(weir::buffer memory, weir::dtype type, const weir::shape& extents, std::span<const std::int64_t> strides,
             std::size_t offset)
    : buffer_(std::move(memory)), shape_(extents), strides_(strides), dtype_(type), offset_(offset) {
    if (strides.size() != extents.dimensions()) {
        throw argument_error(described(type, extents) + " and " + std::to_string(strides.size()) +
                             " strides: give one for each dimension");
    }
    if (!has_whole_bytes(type)) {
        if (!layout::is_packed(extents.extents(), strides, layout::stride_item(type))) {
            throw argument_error(described(type, extents) +
                                 " with strides that are not those of C order: elements of " +
                                 "this type are not whole bytes, and lie in C order only");
        }
        *this = array(std::move(buffer_), type, extents, offset);
        return;
    }
    if (bits_of(type) == 0) {
        expect_aligned(buffer_, type, extents, offset);
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
    weir::buffer::tracked_memory memory = buffer_.tracked(detail::key);
    memory.device_data += offset_;
    elements_ = detail::elements_memory(memory);
}

void array::find_footprint() {
    find_elements();
    contiguous_ = layout::is_packed(shape_.extents(), strides(), layout::stride_item(dtype_));
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
    if (!has_whole_bytes(dtype_)) {
        moved = made.bytes_to_part(*this, moved);
    }
    // An empty array has no elements to point to: keep the offset within the memory.
    made.offset_ = made.size() == 0 ? offset_ : static_cast<std::size_t>(static_cast<std::int64_t>(offset_) + moved);
    made.find_footprint();
    return made;
}

std::int64_t array::bytes_to_part(const array& whole, std::int64_t moved) const {
    if (size() == 0) {
        return 0;
    }
    const auto item = static_cast<std::int64_t>(bits_of(dtype_));
    const std::int64_t end = moved + size() * item;
    // A part that shares a byte with other elements could not be written without writing those.
    const bool whole_bytes = moved % 8 == 0 && (end % 8 == 0 || end == whole.size() * item);
    if (!whole_bytes || !layout::is_packed(shape_.extents(), strides(), layout::stride_item(dtype_))) {
        throw argument_error("a part of " + whole.to_string() + " with the shape " + shape_.to_string() +
                             ": an element has " + std::to_string(item) +
                             " bits, so a part must lie in C order and begin and end with a byte");
    }
    return moved / 8;
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

std::vector<device> array::devices() const {
    std::vector<weir::device> all{device()};
    const runtime::resource* const memory = buffer_.resource(detail::key);
    if (memory == nullptr || memory->reach() == runtime::memory_reach::own_device) {
        return all;
    }
    const weir::device home = buffer_.device();
    const auto add = [&all](const weir::device& one) {
        if (std::find(all.begin(), all.end(), one) == all.end()) {
            all.push_back(one);
        }
    };
    add(home);
    if (memory->reach() == runtime::memory_reach::host_too) {
        add(cpu());
        return all;
    }
    for (const weir::device& one : weir::devices()) {
        if (one.kind() == device_kind::cuda) {
            add(one);
        }
    }
    return all;
}

array array::view_on(const weir::device& other) const {
    if (other == device()) {
        return *this;
    }
    const std::vector<weir::device> reached = devices();
    if (std::find(reached.begin(), reached.end(), other) == reached.end()) {
        throw copy_error(to_string() + " is memory that " + other.name() +
                         " does not reach: copy it there with to(on, x, device)");
    }
    array made(*this);
    made.place_ = other == buffer_.device() ? nullptr : &other.state(detail::key);
    return made;
}

bool array::ready() const {
    runtime::resource* const memory = buffer_.resource(detail::key);
    return memory == nullptr || memory::is_ready_for(*memory, used(detail::key), order::access_mode::read);
}

std::string array::to_string() const {
    return "<weir.array " + std::string(name_of(dtype_)) + " " + shape_.to_string() + " on " + device().name() + ">";
}

void array::refuse_type(weir::dtype wanted) const {
    throw argument_type_error("the array's elements are " + std::string(name_of(dtype_)) + ", not " +
                              std::string(name_of(wanted)) + ": ask for a view of its own type");
}

void array::refuse_use() {
    throw state_error(
        "the array was for use inside of a borrow, which has ended: use the array that was given to it, or a copy");
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

/// Copies the elements of `of` to the host in C order. Requires that nothing writes them meanwhile.
void pack(const array& of, std::byte* to) {
    if (!has_arithmetic(of.dtype())) {
        pack(as_numbers(of), to);
        return;
    }
    const bool reachable = of.buffer().host_reachable(detail::key);
    if (!reachable && of.is_contiguous()) {
        of.buffer().fetch(detail::key, to, of.device_data(), of.nbytes());
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
    // Run by run: the bytes between the elements may be written at this moment, since this does not wait for their writers.
    const bool runs = both.column_stride(1) == static_cast<std::int64_t>(item);
    both.for_each_chunk(runs ? std::numeric_limits<std::int64_t>::max() : 1,
                        [&](const walk::plan::pointers& at, std::int64_t rows, std::int64_t columns) {
                            for (std::int64_t row = 0; row < rows; ++row) {
                                of.buffer().fetch(detail::key, at[0] + row * both.row_stride(0),
                                                  at[1] + row * both.row_stride(1),
                                                  static_cast<std::size_t>(columns) * item);
                            }
                        });
}

}  // namespace

void copy_to_host(const array& of, std::byte* to, source_location where) {
    const host_access access(detail::key, of.buffer(), of.used(detail::key), order::access_mode::read, where, true);
    pack(of, to);
}

host_window::host_window(const array& of, order::access_mode mode, source_location where) : data_(of.data()) {
    const bool reachable = of.buffer().host_reachable(detail::key);
    if (!reachable && mode == order::access_mode::write) {
        throw argument_error(
            "the host cannot change " + of.to_string() +
            " in place: write to it with weir::copy_from_host, or with weir::copy from an array on cpu");
    }
    const bool copies = !reachable || !of.is_contiguous();
    access_.emplace(detail::key, of.buffer(), of.used(detail::key), mode, where, copies);
    if (copies) {
        copy_ = std::make_unique_for_overwrite<std::byte[]>(of.nbytes());
        pack(of, copy_.get());
        data_ = copy_.get();
        access_.reset();
    }
}

}  // namespace detail

}  // namespace weir
