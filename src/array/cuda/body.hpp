#pragma once

#include <string>

#include "array/cuda/source.hpp"

namespace weir::array_kernels {

/// What an element-wise kernel computes of one element of each input, in CUDA C++. Everything else in the kernel (the choice of the
/// element for a thread, strides, conversions, the launch) is the same for all bodies, so that a new body changes none of it.
struct body {
    /// The name of a stateless function object type. Its call operator takes an element of each input, in the types in which the function
    /// is computed, and returns the element of the result.
    std::string name;
    /// Defines that type; follows the element types (prelude_types), outside of any namespace. Types there have dtype's
    /// names: weir::float32. An added body defines its names in a namespace of its own.
    std::string definition;

    friend bool operator==(const body&, const body&) = default;
};

/// The body of an element-wise function: one of Weir's own operations, or an added one. Valid until the process ends.
[[nodiscard]] const body& body_of(function what);

/// The function that computes this body: the same one for an equal body, on all devices and threads. Bodies are never destroyed, nor
/// are the kernels compiled from them. Throws std::bad_alloc.
[[nodiscard]] function function_of(const body& what);

}  // namespace weir::array_kernels
