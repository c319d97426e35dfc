#pragma once

#include <cstddef>

#include "weir/arithmetic.hpp"
#include "weir/dtype.hpp"

/// The inner loops of arithmetic over packed elements: one for each operation and each type in which it is computed.
namespace weir::loops {

/// Computes `count` results. The result may be one of the operands, but must not overlap them otherwise. Throws
/// argument_error where elements cannot be computed (integers to a negative power).
using binary = void (*)(const std::byte* a, const std::byte* b, std::byte* out, std::size_t count);
using unary = void (*)(const std::byte* a, std::byte* out, std::size_t count);

/// The loop, and the types that it takes and returns.
struct binary_loop {
    binary run = nullptr;  ///< null: the type does not have the operation
    dtype a = dtype::bool_;
    dtype b = dtype::bool_;
    dtype result = dtype::bool_;
};
struct unary_loop {
    unary run = nullptr;
    dtype in = dtype::bool_;
    dtype result = dtype::bool_;
};

/// For operands of the common type `type`; results are computed in a wider type where that type is short.
[[nodiscard]] binary_loop find(binary_operation what, dtype type) noexcept;
[[nodiscard]] unary_loop find(unary_operation what, dtype type) noexcept;
/// Compares uint64 (a) with int64 (b), which have no common type, exactly.
[[nodiscard]] binary_loop find_mixed(binary_operation what) noexcept;

[[nodiscard]] constexpr bool is_comparison(binary_operation what) noexcept {
    return what >= binary_operation::equal && what <= binary_operation::greater_equal;
}
[[nodiscard]] constexpr bool is_bitwise(binary_operation what) noexcept {
    return what >= binary_operation::bitwise_and;
}

/// The type in which elements of `type` are computed: float32 for short floating-point numbers, else `type`.
[[nodiscard]] constexpr dtype computed_in(dtype type) noexcept {
    return type == dtype::float16 || type == dtype::bfloat16 ? dtype::float32 : type;
}

// One function for each source file.
[[nodiscard]] binary arithmetic(binary_operation what, dtype type) noexcept;
[[nodiscard]] binary comparison(binary_operation what, dtype type) noexcept;
[[nodiscard]] binary power(dtype type) noexcept;

}  // namespace weir::loops
