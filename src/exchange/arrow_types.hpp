#pragma once

#include "weir/arrow.hpp"
#include "weir/dtype.hpp"

namespace weir::exchange {

/// Arrow's format string of an element type. Throws exchange_error, with what to do.
[[nodiscard]] const char* arrow_format_of(dtype type);

/// The element type of a schema. Throws exchange_error.
[[nodiscard]] dtype arrow_dtype_of(const arrow::schema& type);

}  // namespace weir::exchange
