// Replaces eigen_real.cpp and eigen_complex.cpp if Weir is built without Eigen.
#include "calls/sparse/factorization.hpp"
#include "weir/error.hpp"

namespace weir::calls {

namespace {

[[noreturn]] void refuse_without_eigen() {
    throw missing_library(
        "solve: this Weir was built without Eigen, which solves sparse systems on the CPU: install libeigen3-dev "
        "(Debian, Ubuntu) "
        "and build Weir with -DWEIR_EIGEN=ON, or compute on a CUDA device");
}

}  // namespace

std::shared_ptr<factorization> make_eigen_real(const sparse_system& /*system*/) { refuse_without_eigen(); }
std::shared_ptr<factorization> make_eigen_complex(const sparse_system& /*system*/) { refuse_without_eigen(); }

const char* eigen_version() noexcept { return ""; }

}  // namespace weir::calls
