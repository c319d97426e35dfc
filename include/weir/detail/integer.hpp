// Integers as arguments. Layer: base.
#pragma once

#include <concepts>

namespace weir::detail {

/// An integer: bool, which converts to one, is none.
template <class T>
concept integer = std::integral<T> && !std::same_as<T, bool>;

}  // namespace weir::detail
