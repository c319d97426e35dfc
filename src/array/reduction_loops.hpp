#pragma once

#include "array/elements/reduction_step.hpp"
#include "weir/dtype.hpp"
#include "weir/reduction.hpp"

/// The loops of sums, extremes and means.
namespace weir::loops {

struct reducer {
    elements::host_reduction run;  ///< of one input and one output
    dtype computed;                ///< type of the values during the computation
    dtype result;
};

/// How elements of `type` are reduced. The type must have arithmetic.
[[nodiscard]] reducer find(reduction what, dtype type);

}  // namespace weir::loops
