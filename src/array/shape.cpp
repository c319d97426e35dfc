#include "weir/shape.hpp"

#include <algorithm>
#include <cstdint>

#include "array/layout.hpp"
#include "weir/error.hpp"

namespace weir {

shape::shape(std::span<const std::int64_t> extents) {
    if (extents.size() > most) {
        throw argument_error("a shape of " + std::to_string(extents.size()) + " dimensions: arrays have at most " +
                             std::to_string(most));
    }
    extents_ = detail::axis_list(extents);
    std::int64_t elements = 1;
    for (const std::int64_t extent : extents) {
        // Zeros count as ones, so that whether a shape is possible does not depend on the order of its extents.
        const bool overflows = __builtin_mul_overflow(elements, std::max<std::int64_t>(extent, 1), &elements);
        if (extent < 0 || overflows || elements > detail::most_elements) {
            refuse();
        }
    }
}

void shape::refuse() const {
    for (const std::int64_t extent : extents()) {
        if (extent < 0) {
            throw argument_error("the shape " + to_string() + " has the extent " + std::to_string(extent) +
                                 ": extents are 0 or more");
        }
    }
    throw argument_error("the shape " + to_string() + " has more elements than can be addressed (" +
                         std::to_string(detail::most_elements) + ")");
}

std::string shape::to_string() const {
    std::string text = "(";
    for (std::size_t axis = 0; axis < dimensions(); ++axis) {
        text += (axis == 0 ? "" : ", ") + std::to_string(extents_[axis]);
    }
    return text + (dimensions() == 1 ? ",)" : ")");
}

shape broadcast_shapes(const shape& a, const shape& b) {
    if (a == b) {
        return a;
    }
    const shape& longer = a.dimensions() >= b.dimensions() ? a : b;
    const shape& shorter = a.dimensions() >= b.dimensions() ? b : a;
    layout::axes extents;
    const std::size_t ahead = longer.dimensions() - shorter.dimensions();
    for (std::size_t axis = 0; axis < longer.dimensions(); ++axis) {
        extents[axis] = longer[axis];
        if (axis < ahead || shorter[axis - ahead] == longer[axis] || shorter[axis - ahead] == 1) {
            continue;
        }
        if (longer[axis] != 1) {
            throw argument_error("the shapes " + a.to_string() + " and " + b.to_string() +
                                 " do not fit together: counted from the last dimension, extents must be equal or 1");
        }
        extents[axis] = shorter[axis - ahead];
    }
    return shape(extents.first(longer.dimensions()));
}

namespace layout {

axes packed_strides(std::span<const std::int64_t> extents, std::size_t item) noexcept {
    axes strides;
    auto stride = static_cast<std::int64_t>(item);
    for (std::size_t axis = extents.size(); axis-- > 0;) {
        strides[axis] = stride;
        stride *= std::max<std::int64_t>(extents[axis], 1);
    }
    return strides;
}

bool is_packed(std::span<const std::int64_t> extents, std::span<const std::int64_t> strides,
               std::size_t item) noexcept {
    auto stride = static_cast<std::int64_t>(item);
    bool packed = true;
    for (std::size_t axis = extents.size(); axis-- > 0;) {
        if (extents[axis] == 0) {
            return true;
        }
        packed = packed && (extents[axis] == 1 || strides[axis] == stride);
        stride *= extents[axis];
    }
    return packed;
}

std::size_t axis_of(std::int64_t axis, const shape& extents) {
    const auto count = static_cast<std::int64_t>(extents.dimensions());
    if (axis < -count || axis >= count) {
        throw argument_error(
            "axis " + std::to_string(axis) + " of an array of the shape " + extents.to_string() + ": there are " +
            std::to_string(count) + " axes" +
            (count == 0 ? "" : ", from " + std::to_string(-count) + " to " + std::to_string(count - 1)));
    }
    return static_cast<std::size_t>(axis < 0 ? axis + count : axis);
}

}  // namespace layout

}  // namespace weir
