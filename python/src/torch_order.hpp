// The order that weir.torch.safe() keeps.
#pragma once

#include "weir/detail/package_order.hpp"

namespace weir::python {

/// Of the program, while it is kept in order; else null. For torch, or for another package, which may share torch's memory, and of which only
/// kernels are seen. Lives as long as the process.
[[nodiscard]] detail::package_order* torch_order(bool for_torch) noexcept;

}  // namespace weir::python
