// The folder exchange/ passes arrays to other libraries and accepts theirs, by DLPack, the CUDA Array Interface and Arrow. It
// includes array/ and the folders below.
#pragma once

#include <cstddef>
#include <cstdint>

#include "frontier/small_vector.hpp"
#include "weir/dlpack.hpp"
#include "weir/dtype.hpp"

namespace weir::exchange {

/// The checked layout of a DLPack tensor: no size, stride or offset in it overflows.
struct tensor_layout {
    using numbers = weir::detail::small_vector<std::int64_t, 8>;

    dtype type = dtype::float64;
    numbers extents;
    /// As those of an array: in bytes, or in bits for elements that are not whole bytes.
    numbers strides;
    std::byte* lowest = nullptr;  ///< the first byte of the elements; null if there are none
    std::size_t bytes = 0;        ///< from there to one past the last byte of the elements
    std::size_t first = 0;        ///< bytes from `lowest` to the element with all indices 0
};

/// Throws exchange_error, with what is invalid.
[[nodiscard]] tensor_layout layout_of(const dlpack::tensor& what);

}  // namespace weir::exchange
