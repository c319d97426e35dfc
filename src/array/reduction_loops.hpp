#pragma once

#include <cstddef>
#include <cstdint>

#include "weir/dtype.hpp"
#include "weir/reduction.hpp"

/// What reductions do with packed elements of one type.
namespace weir::loops {

/// A value on the way to a result, of the type that the reduction is computed in.
struct alignas(16) partial {
    std::byte bytes[16];
};

struct reducer {
    /// The result of `count` elements, at least 1.
    void (*many)(const std::byte* elements, std::size_t count, partial* result) noexcept = nullptr;
    /// The result of two results, in place of the first.
    void (*two)(partial* into, const partial* other) noexcept = nullptr;
    /// Divides by a number of elements.
    void (*divide)(partial* by, std::int64_t count) noexcept = nullptr;
    dtype computed = dtype::float64;  ///< the type of elements and results while it is computed
    dtype result = dtype::float64;
};

[[nodiscard]] reducer find(reduction what, dtype type) noexcept;

}  // namespace weir::loops
