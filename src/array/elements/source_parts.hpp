#pragma once

#include <string>

#include "array/elements/signature.hpp"
#include "weir/dtype.hpp"

// Parts that the sources of element-wise kernels and of reductions have in common.
namespace weir::elements {

/// The name of an element type in a source, and of the type in which a body sees its elements.
[[nodiscard]] std::string type_text(dtype type);
[[nodiscard]] std::string seen_text(dtype stored);

/// The class template of an output that the body assigns and cannot read. An output that is not assigned is 0. A template, so that
/// a conversion error is reported where the body makes it, and the compiler's message contains the name of the output.
[[nodiscard]] std::string write_only_class(const element_parameter& one);
/// The type in which the body sees an output.
[[nodiscard]] std::string output_type(const element_parameter& one, dtype stored);

/// What every source for the host, or for CUDA devices, starts with: WEIR_INLINE, element types, functions for bodies.
[[nodiscard]] std::string host_start();
[[nodiscard]] std::string cuda_start();

}  // namespace weir::elements
