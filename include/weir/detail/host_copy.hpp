// Copies of arrays' elements to existing memory of the host. Layer: array.
#pragma once

#include <cstddef>

#include "weir/export.hpp"
#include "weir/source_location.hpp"

namespace weir {

class array;

namespace detail {

/// Writes the elements of `of` to `to`, in C order: `of.nbytes()` bytes. Blocks until pending writes to these elements are complete, and
/// no longer (rule O6). Throws operation_error if the operation that wrote them failed (rule K4).
WEIR_EXPORT void copy_to_host(const array& of, std::byte* to, source_location where);

}  // namespace detail

}  // namespace weir
