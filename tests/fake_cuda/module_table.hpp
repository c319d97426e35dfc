#pragma once

#include <cstddef>

namespace weir_fake {

/// With the driver's lock.
std::size_t live_modules();

}  // namespace weir_fake
