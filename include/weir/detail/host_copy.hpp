// Elements of arrays, copied to memory of the host that is there already. Layer: array.
#pragma once

#include <cstddef>

#include "weir/export.hpp"
#include "weir/source_location.hpp"

namespace weir {

class array;

namespace detail {

/// Writes the elements of `of` to `to`, in C order: `of.nbytes()` bytes. Blocks until pending writes to these elements are
/// over, and no longer (rule O6). Throws operation_error if what wrote them failed (rule K4).
WEIR_EXPORT void copy_to_host(const array& of, std::byte* to, source_location where);

}  // namespace detail

}  // namespace weir
