#pragma once

#include <memory>

#include "calls/sparse/factorization.hpp"
#include "calls/sparse/structure.hpp"
#include "weir/device.hpp"

namespace weir::calls {

/// A system as cuSOLVER solves it, where cuDSS is missing: on the device, but with one call that analyzes, factorizes and solves for one
/// right-hand side and waits for the device. So the analysis only checks the indices, the factorization only takes the values and solves
/// once to find out whether the matrix is singular, and each solution does the work anew. Throws missing_library, device_error, out_of_memory; argument_error for more than 2,147,483,647 rows or
/// elements.
[[nodiscard]] std::shared_ptr<factorization> make_cusolver_factorization(const sparse_system& system, const device& on);

}  // namespace weir::calls
