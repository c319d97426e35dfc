// The order that weir.torch.safe() keeps.
#pragma once

#include "weir/detail/package_order.hpp"

namespace weir::python {

/// Of the program, while it is kept in order; else null. Lives as long as the process.
[[nodiscard]] detail::package_order* torch_order() noexcept;

}  // namespace weir::python
