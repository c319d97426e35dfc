#include "calls/sparse/eigen_factorization.hpp"
#include "calls/sparse/structure.hpp"
#include "weir/dtype.hpp"

namespace weir::calls {

std::shared_ptr<factorization> make_eigen_complex(const sparse_system& system) {
    return system.values == dtype::complex64 ? make_eigen<std::complex<float>>(system)
                                             : make_eigen<std::complex<double>>(system);
}

const char* eigen_version() noexcept {
#define WEIR_TEXT_OF(x) #x
#define WEIR_TEXT(x) WEIR_TEXT_OF(x)
    return WEIR_TEXT(EIGEN_WORLD_VERSION) "." WEIR_TEXT(EIGEN_MAJOR_VERSION) "." WEIR_TEXT(EIGEN_MINOR_VERSION);
#undef WEIR_TEXT
#undef WEIR_TEXT_OF
}

}  // namespace weir::calls
