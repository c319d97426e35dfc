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
#include "weir/on.hpp"

namespace weir::array_kernels {

/// One input of an operation: an array, or a number in the type that the function takes.
struct packed_input {
    const array* x = nullptr;  ///< null: a number
    dtype computed = dtype::bool_;
    alignas(16) std::array<std::byte, 16> number;  ///< not initialised for an array
};

/// Fast path for most operations: arrays of one shape whose elements lie one after the other, and numbers.
/// Enqueues what `enqueue` would for their plan. Does nothing and returns nothing where operands have another form, share
/// memory but not element for element, where there are no elements or very many, or where the operation may fail because of its
/// data. Throws as launches::add and runtime::submit do; argument_error for an array of another device.
[[nodiscard]] std::optional<completion> enqueue_packed(const kernels& in, const on& where, function what,
                                                       const array& out, dtype result,
                                                       std::span<const packed_input> inputs);

}  // namespace weir::array_kernels
