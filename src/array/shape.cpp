#include <algorithm>
#include <cstdint>
#include <limits>

#include "weir/array.hpp"
#include "weir/error.hpp"

namespace weir {

namespace {

/// As many elements of the largest type as a difference of pointers can count.
constexpr std::int64_t most_elements = std::numeric_limits<std::ptrdiff_t>::max() / 16;

}  // namespace

shape::shape(std::span<const std::int64_t> extents) {
    if (extents.size() > most) {
        throw argument_error("a shape of " + std::to_string(extents.size()) + " dimensions: arrays have at most " +
                             std::to_string(most));
    }
    std::copy(extents.begin(), extents.end(), extents_.begin());
    count_ = extents.size();
    std::int64_t elements = 1;
    for (const std::int64_t extent : extents) {
        if (extent < 0) {
            throw argument_error("the shape " + to_string() + " has the extent " + std::to_string(extent) +
                                 ": extents are 0 or more");
        }
        // Zeros count as ones, so that whether a shape is possible does not depend on the order of its extents.
        const std::int64_t factor = std::max<std::int64_t>(extent, 1);
        if (elements > most_elements / factor) {
            throw argument_error("the shape " + to_string() + " has more elements than can be addressed (" +
                                 std::to_string(most_elements) + ")");
        }
        elements *= factor;
    }
}

std::int64_t shape::elements() const noexcept {
    std::int64_t product = 1;
    for (const std::int64_t extent : extents()) {
        product *= extent;
    }
    return product;
}

std::string shape::to_string() const {
    std::string text = "(";
    for (std::size_t axis = 0; axis < count_; ++axis) {
        text += (axis == 0 ? "" : ", ") + std::to_string(extents_[axis]);
    }
    return text + (count_ == 1 ? ",)" : ")");
}

}  // namespace weir
