#pragma once

#include <memory>

#include "calls/sparse/factorization.hpp"
#include "weir/device.hpp"

namespace weir::calls {

/// Whether NVIDIA libraries compute on the device; also true where tests run host code in place of its kernels.
[[nodiscard]] bool serves_cudss(const device& on) noexcept;

/// A cuDSS factorization, for such a device. Throws missing_library, device_error, out_of_memory.
[[nodiscard]] std::shared_ptr<factorization> make_cudss_factorization(const sparse_system& system, const device& on);

}  // namespace weir::calls
