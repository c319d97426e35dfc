#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "array/cuda/launch.hpp"
#include "array/cuda/source.hpp"
#include "weir/array.hpp"
#include "weir/completion.hpp"
#include "weir/dtype.hpp"
#include "weir/launch.hpp"

namespace weir::array_kernels {

/// One input of an operation: an array, or a number as the function takes it.
struct packed_input {
    const array* x = nullptr;  ///< null: a number
    dtype computed = dtype::bool_;
    alignas(16) std::array<std::byte, 16> number;  ///< not initialised beside an array
};

/// The short way for what most operations are: arrays of one shape whose elements lie one after the other, and numbers.
/// Enqueues what `enqueue` would for their plan. Does nothing and returns nothing where operands are otherwise, share
/// memory but not element for element, are none or very many, or where it may fail for what it finds in them. Throws as
/// launches::add and runtime::submit do; argument_error for an array of another device.
[[nodiscard]] std::optional<completion> enqueue_packed(const context& in, const on& where, function what,
                                                       const array& out, dtype result,
                                                       std::span<const packed_input> inputs);

}  // namespace weir::array_kernels
