#pragma once

#include "array/cuda/source.hpp"
#include "array/walk.hpp"
#include "weir/completion.hpp"
#include "weir/dtype.hpp"
#include "weir/launch.hpp"

namespace weir::array_kernels {

/// What is reduced to what.
struct reduction_of {
    function what = function::plus;
    bool mean = false;
    dtype stored = dtype::bool_;          ///< of the elements
    dtype computed = dtype::float64;      ///< of values on the way
    dtype result = dtype::float64;        ///< of the results
    const walk::plan* results = nullptr;  ///< over the results and the first elements of what is reduced to them
    const walk::plan* reduced = nullptr;  ///< over what is reduced to one of them; at least one element
    const std::byte* origin = nullptr;    ///< the first element
};

/// Enqueues it: reads `x`, writes `out`. Each thread reduces up to 32 elements, blocks of threads make one value of those
/// in pairs, and that is done again with the values of all blocks until one is left: the same pairs whenever it runs, on
/// whatever device. A sum of n numbers is within 24 * ceil(log256(n)) * 2^-53 of the sum of their magnitudes, before it is
/// rounded to the result's type. Throws as launches::add and runtime::submit do.
completion enqueue(const on& where, const array& out, const array& x, const reduction_of& what);

}  // namespace weir::array_kernels
