#pragma once

#include "weir/arithmetic.hpp"
#include "weir/dtype.hpp"

namespace weir::promotion {

/// What a number beside an array of `type` counts as (NEP 50): the array's type where that has numbers of such a kind,
/// else the smallest one that has and is not smaller.
[[nodiscard]] dtype beside(dtype type, const scalar& number) noexcept;
/// What a number counts as where there is no array: the default of its kind.
[[nodiscard]] dtype alone(const scalar& number) noexcept;
/// The common type of operands, some of which may be numbers. Throws argument_type_error.
[[nodiscard]] dtype common(const operand& a, const operand& b);

}  // namespace weir::promotion
