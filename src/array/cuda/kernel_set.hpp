#pragma once

#include <span>
#include <vector>

#include "array/cuda/source.hpp"
#include "weir/dtype.hpp"

namespace weir::array_kernels {

/// Kernels that are compiled together, in the order of the source.
using kernel_set = std::vector<description>;

/// The kernels that a CUDA device gets when it is opened: what operations on packed arrays of these types need, and copies of elements
/// of any size. The types: bool, int32, int64, float32, float64. Compiled in parts, so that several threads can do that; the
/// parts are the same in every process, so that the folder of compiled kernels has them.
[[nodiscard]] std::vector<kernel_set> usual_sets();

/// All kernels for arrays of this type: those of usual_sets for it, and those for arrays of any strides that have, once their axes are
/// merged, one or two dimensions; power; conversions from and to the usual types. The type must have arithmetic.
[[nodiscard]] std::vector<kernel_set> sets_for(dtype type);

/// The operators, comparisons and `select` between an array of one type and an array of another one: packed, and of any strides that have,
/// once their axes are merged, one or two dimensions. Without comparisons of uint64 with signed integers. Both types must have arithmetic.
[[nodiscard]] std::vector<kernel_set> sets_between(dtype one, dtype other);

/// The types of usual_sets.
[[nodiscard]] std::span<const dtype> usual_types() noexcept;

}  // namespace weir::array_kernels
