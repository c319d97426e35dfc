#include "calls/sparse/eigen_factorization.hpp"
#include "calls/sparse/structure.hpp"
#include "weir/dtype.hpp"

namespace weir::calls {

std::shared_ptr<factorization> make_eigen_real(const sparse_system& system) {
    return system.values == dtype::float32 ? make_eigen<float>(system) : make_eigen<double>(system);
}

}  // namespace weir::calls
