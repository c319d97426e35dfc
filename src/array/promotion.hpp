#pragma once

#include "weir/arithmetic.hpp"
#include "weir/dtype.hpp"

namespace weir::promotion {

/// The type of a number beside an array of `type` (NEP 50): the array's type if that has numbers of this kind,
/// else the smallest type that has them and is not smaller.
[[nodiscard]] dtype beside(dtype type, const scalar& number) noexcept;
/// The type of a number without an array: the default of its kind.
[[nodiscard]] dtype alone(const scalar& number) noexcept;
/// The common type of operands, some of which may be numbers. Throws argument_type_error.
[[nodiscard]] dtype common(const operand& a, const operand& b);

}  // namespace weir::promotion
