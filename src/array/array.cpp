#include "weir/array.hpp"

#include <algorithm>
#include <string>

#include "memory/access.hpp"
#include "weir/error.hpp"

namespace weir {

namespace {

std::string range_text(std::int64_t first, std::int64_t last) {
    return "[" + std::to_string(first) + ", " + std::to_string(last) + ")";
}

/// What an address of an element is a multiple of: complex numbers are aligned as their parts are.
std::size_t alignment_of(dtype type) noexcept { return is_complex(type) ? size_of(type) / 2 : size_of(type); }

}  // namespace

array::array(weir::buffer memory, weir::dtype type, const weir::shape& extents, std::size_t offset)
    : buffer_(std::move(memory)), shape_(extents), offset_(offset), dtype_(type) {
    const bool fits = offset <= buffer_.bytes() && nbytes() <= buffer_.bytes() - offset;
    if (fits && offset % alignment_of(type) == 0) {
        return;
    }
    const std::string what = "an array of " + std::string(name_of(type)) + " with the shape " + extents.to_string();
    if (!fits) {
        throw argument_error(what + " needs " + std::to_string(nbytes()) + " bytes from byte " +
                             std::to_string(offset) + " on; the buffer has " + std::to_string(buffer_.bytes()) +
                             ": make a larger buffer or a smaller array");
    }
    throw argument_error(what + " cannot begin at byte " + std::to_string(offset) +
                         ": the offset must be a multiple of " + std::to_string(alignment_of(type)));
}

std::size_t array::nbytes() const noexcept { return static_cast<std::size_t>(size()) * size_of(dtype_); }

order::footprint array::footprint() const noexcept { return {offset_, offset_ + nbytes()}; }

array array::slice(std::int64_t first, std::int64_t last) const {
    if (shape_.dimensions() == 0) {
        throw argument_error("slice " + range_text(first, last) +
                             " of an array without dimensions: reshape it to (1,) first");
    }
    const std::int64_t extent = shape_[0];
    if (first < 0 || last < first || last > extent) {
        throw argument_error("slice " + range_text(first, last) + " of an array of the shape " + shape_.to_string() +
                             ": the range must lie within " + range_text(0, extent));
    }
    std::array<std::int64_t, shape::most> extents{};
    std::copy(shape_.extents().begin(), shape_.extents().end(), extents.begin());
    extents[0] = 1;
    const std::span<const std::int64_t> kept(extents.data(), shape_.dimensions());
    const auto row = static_cast<std::size_t>(weir::shape(kept).elements()) * size_of(dtype_);
    extents[0] = last - first;

    array part = *this;
    part.shape_ = weir::shape(kept);
    part.offset_ += static_cast<std::size_t>(first) * row;
    return part;
}

array array::reshape(const weir::shape& to) const {
    if (to.elements() != size()) {
        throw argument_error("an array of the shape " + shape_.to_string() + " has " + std::to_string(size()) +
                             " elements and cannot become " + to.to_string() + ", which has " +
                             std::to_string(to.elements()));
    }
    array same = *this;
    same.shape_ = to;
    return same;
}

bool array::ready() const {
    runtime::resource* const memory = buffer_.resource();
    return memory == nullptr || memory::nothing_pending(*memory, footprint(), order::access_mode::read);
}

std::string array::to_string() const {
    return "<weir.array " + std::string(name_of(dtype_)) + " " + shape_.to_string() + " on " + device().name() + ">";
}

void array::expect(weir::dtype wanted) const {
    if (wanted != dtype_) {
        throw argument_type_error("the array's elements are " + std::string(name_of(dtype_)) + ", not " +
                                  std::string(name_of(wanted)) + ": ask for a view of its own type");
    }
}

}  // namespace weir
