#pragma once

#include <cstddef>
#include <cstdint>

/// What computes the steps of a reduction on the host: loops of the library, or a program that is compiled from texts.
namespace weir::elements {

/// The number of values into which the elements of a chunk are reduced side by side: element j belongs to value j % lanes.
inline constexpr std::int64_t reduction_lanes = 16;

/// One step of a reduction on the host. The caller knows the bytes of a value.
struct reduction_step {
    enum : std::int64_t {
        /// Reduces `count` elements of each of `results` results to their lanes. Element 0 is number `position` of its chunk, and number
        /// `index` of the elements of its result. Values of one lane are adjacent: lanes[reduction_lanes][results].
        elements = 0,
        /// Combines the lanes of a chunk with `count` elements in pairs: values[results].
        lanes_of_chunk = 1,
        /// values[r] = reduce(values[r], others[r])
        pairs = 2,
        /// Writes the outputs for values[r], each of which is of `total` elements.
        outputs = 3,
        /// values[r] = identity
        no_elements = 4,
    };
    std::int64_t what = elements;
    std::int64_t results = 1;
    std::int64_t count = 0;
    std::int64_t position = 0;
    std::int64_t index = 0;
    std::int64_t total = 0;             ///< how many elements each result has
    std::byte* const* first = nullptr;  ///< of the inputs, for numbers the value that the map sees; or of the outputs
    const std::int64_t* result_strides = nullptr;  ///< in bytes, between results
    const std::int64_t* strides = nullptr;         ///< in bytes, between elements of a result
    std::byte* lanes = nullptr;                    ///< or others
    std::byte* values = nullptr;
};
using host_reduction = void (*)(const reduction_step* what);

}  // namespace weir::elements
