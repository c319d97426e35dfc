#include "array/carried.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "array/layout.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/error.hpp"

namespace weir::detail {

namespace {

/// As as_numbers, of the device whose memory it is, and for ever.
array numbers_in_memory(const array& x) {
    const auto offset = static_cast<std::size_t>(x.device_data() - x.buffer().device_data());
    if (!has_whole_bytes(x.dtype())) {
        return {x.buffer(), dtype::uint8, shape(static_cast<std::int64_t>(x.nbytes())), offset};
    }
    const std::size_t unit = alignment_of(x.dtype());
    const std::size_t units = size_of(x.dtype()) / unit;
    const dtype type(dtype_code::unsigned_integer, static_cast<std::uint8_t>(8 * unit));
    if (units == 1) {
        return {x.buffer(), type, x.shape(), x.strides(), offset};
    }
    std::size_t dimensions = x.dimensions();
    if (dimensions == shape::most) {
        throw argument_error("a copy of " + x.to_string() + ": elements of this type are copied in at most " +
                             std::to_string(shape::most - 1) + " dimensions; reshape the array to fewer");
    }
    layout::axes extents;
    layout::axes strides;
    for (std::size_t axis = 0; axis < dimensions; ++axis) {
        extents[axis] = x.shape()[axis];
        strides[axis] = x.strides()[axis];
    }
    extents[dimensions] = static_cast<std::int64_t>(units);
    strides[dimensions] = static_cast<std::int64_t>(unit);
    ++dimensions;
    return {x.buffer(), type, shape(extents.first(dimensions)), strides.first(dimensions), offset};
}

}  // namespace

array as_numbers(const array& x) {
    array made = numbers_in_memory(x);
    if (x.buffer() && x.place(key) != nullptr) {
        made = made.view_on(x.device());
    }
    made.use_within(key, x.period(key));
    return made;
}

void expect_convertible(dtype from, dtype to) {
    if (from != to) {
        expect_arithmetic(from, "a conversion");
        expect_arithmetic(to, "a conversion");
    }
}

}  // namespace weir::detail
