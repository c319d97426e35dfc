#pragma once

#include <memory>
#include <vector>

#include "weir/dlpack.hpp"
#include "weir/package.hpp"

namespace weir::exchange {

/// As to_dlpack; `besides` is kept as long as the memory, and released on a thread of Weir's.
[[nodiscard]] dlpack_tensor exported_with(const array& x, package_use use,
                                          std::vector<std::shared_ptr<package>> consumers,
                                          std::shared_ptr<void> besides);

}  // namespace weir::exchange
