#pragma once

#include <complex>

#include "array/walk.hpp"
#include "weir/dtype.hpp"
#include "weir/linalg.hpp"

namespace weir::calls {

/// Multiplies operand 0 of a plan by a factor; with 0 it is set to 0, whatever it was. On the host.
void scale_elements(const walk::plan& elements, dtype type, std::complex<double> factor);

/// Does what an epilog does to operand 0 of a plan, of which the bias, if it adds one, is operand 1; both are of the type `type`, which
/// is float32, float64, complex64 or complex128. On the host.
void apply_epilog(const walk::plan& elements, dtype type, matmul_epilog epilog);

}  // namespace weir::calls
