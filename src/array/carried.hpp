#pragma once

#include "weir/array.hpp"

/// Arrays of types without arithmetic, which are copied bit by bit.
namespace weir::detail {

/// The memory of `x`, whose type has no arithmetic, as unsigned integers: for copies. Arrays of one type and shape become
/// arrays of one type and shape. Where an element needs several integers the result has one dimension more; where elements are
/// not whole bytes it is one row of bytes.
[[nodiscard]] array as_numbers(const array& x);

/// Throws argument_type_error unless elements of `from` are elements of `to` or can be converted to them.
void expect_convertible(dtype from, dtype to);

}  // namespace weir::detail
