#include "exchange/tensor_layout.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <string>

#include "array/layout.hpp"
#include "weir/error.hpp"
#include "weir/shape.hpp"

namespace weir::exchange {

namespace {

[[noreturn]] void refuse(const std::string& why) { throw exchange_error("a DLPack tensor " + why); }

/// Libraries allow 32 or 64 dimensions at most: a tensor with more than this is garbage, and its shape is not read.
constexpr std::int32_t most_dimensions = 1024;

/// The extents, none of which is negative.
std::span<const std::int64_t> extents_of(const dlpack::tensor& what) {
    if (what.dimensions < 0) {
        refuse("says that it has " + std::to_string(what.dimensions) + " dimensions");
    }
    if (what.dimensions > most_dimensions) {
        refuse("says that it has " + std::to_string(what.dimensions) + " dimensions, more than any array has");
    }
    if (what.dimensions != 0 && what.shape == nullptr) {
        refuse("has " + std::to_string(what.dimensions) + " dimensions and no shape");
    }
    const std::span<const std::int64_t> extents(what.shape, static_cast<std::size_t>(what.dimensions));
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
        if (extents[axis] < 0) {
            refuse("says that its dimension " + std::to_string(axis) + " has " + std::to_string(extents[axis]) +
                   " elements");
        }
    }
    return extents;
}

[[noreturn]] void refuse_size() { refuse("says that its elements take more memory than there are addresses"); }

/// a * b + c, in bytes or elements. Throws if it overflows.
std::int64_t times_plus(std::int64_t a, std::int64_t b, std::int64_t c) {
    std::int64_t product = 0;
    std::int64_t sum = 0;
    if (__builtin_mul_overflow(a, b, &product) || __builtin_add_overflow(product, c, &sum)) {
        refuse_size();
    }
    return sum;
}

/// Strides in bytes: those of the tensor, or those of C order. One that leads to no element may be any number: it becomes that of an
/// element where bytes cannot count it.
tensor_layout::numbers strides_of(const dlpack::tensor& what, std::span<const std::int64_t> extents,
                                  std::int64_t item) {
    tensor_layout::numbers found(extents.data(), extents.data() + extents.size());
    const bool is_empty = std::find(extents.begin(), extents.end(), 0) != extents.end();
    std::int64_t next = item;
    for (std::size_t axis = extents.size(); axis-- > 0;) {
        if (what.strides != nullptr && (is_empty || extents[axis] == 1)) {
            if (__builtin_mul_overflow(what.strides[axis], item, &found[axis])) {
                found[axis] = item;
            }
        } else if (what.strides != nullptr) {
            found[axis] = times_plus(what.strides[axis], item, 0);
        } else {
            found[axis] = next;
            next = times_plus(next, std::max<std::int64_t>(extents[axis], 1), 0);
        }
    }
    return found;
}

/// The element type, if DLPack 1.3 defines it. Throws exchange_error.
dtype type_of(const dlpack_dtype& described) {
    try {
        return from_dlpack_dtype(described);
    } catch (const argument_type_error& unknown) {
        refuse("has elements of a type that weir does not know: " + std::string(unknown.what()));
    }
}

}  // namespace

tensor_layout layout_of(const dlpack::tensor& what) {
    tensor_layout made;
    made.type = type_of(what.type);
    const std::span<const std::int64_t> extents = extents_of(what);
    const std::int64_t item = static_cast<std::int64_t>(layout::stride_item(made.type));
    made.extents.append(extents.data(), extents.data() + extents.size());
    made.strides = strides_of(what, extents, item);
    if (std::find(extents.begin(), extents.end(), 0) != extents.end()) {
        return made;
    }
    // The range that the elements occupy before and after the start of the first one: of bytes, or of bits where elements are not whole
    // bytes, until it is rounded to bytes.
    std::int64_t below = 0;
    std::int64_t above = item;
    std::int64_t elements = 1;
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
        elements = times_plus(elements, extents[axis], 0);
        std::int64_t& side = made.strides[axis] < 0 ? below : above;
        side = times_plus(made.strides[axis], extents[axis] - 1, side);
    }
    static_cast<void>(times_plus(elements, item, 0));
    if (!has_whole_bytes(made.type)) {
        constexpr std::int64_t bits = 8;
        if (below % bits != 0) {
            refuse("has elements of " + std::to_string(item) + " bits, some of which lie before the first one");
        }
        below /= bits;
        above = above / bits + (above % bits == 0 ? 0 : 1);
    }
    std::int64_t span = 0;
    std::uint64_t address = 0;
    if (__builtin_sub_overflow(above, below, &span) ||
        __builtin_add_overflow(reinterpret_cast<std::uintptr_t>(what.data), what.byte_offset, &address)) {
        refuse_size();
    }
    if (what.data == nullptr) {
        refuse("has elements and no memory");
    }
    const auto before = static_cast<std::uint64_t>(-below);
    if (before > address ||
        address - before > std::numeric_limits<std::uint64_t>::max() - static_cast<std::uint64_t>(span)) {
        refuse_size();
    }
    made.lowest =
        reinterpret_cast<std::byte*>(address - before);  // NOLINT(performance-no-int-to-ptr): checked as a number
    made.bytes = static_cast<std::size_t>(span);
    made.first = static_cast<std::size_t>(before);
    return made;
}

}  // namespace weir::exchange
