#pragma once

#include <memory>

#include "base/setting.hpp"
#include "calls/sparse/factorization.hpp"
#include "calls/sparse/structure.hpp"

namespace weir::calls {

/// The variable that names a library with MKL's PARDISO, which then solves on the CPU in place of Eigen.
inline constexpr detail::setting pardiso_file = "WEIR_PARDISO_LIBRARY";

/// MKL's PARDISO: direct solver of the host, with threads of its own. Throws missing_library.
[[nodiscard]] std::shared_ptr<factorization> make_pardiso_factorization(const sparse_system& system);

}  // namespace weir::calls
