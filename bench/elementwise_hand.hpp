// Loops that a program would write by hand, compiled with the options of element-wise kernels (CMakeLists.txt).
#pragma once

#include <cstddef>

namespace weir::bench {

/// y = a * x + 1
void hand_axpy(const float* x, float a, float* y, std::size_t count) noexcept;
/// d = (x - y) * (x - y)
void hand_distance(const double* x, const double* y, double* d, std::size_t count) noexcept;
/// y = x + row, for rows of `columns` elements.
void hand_bias(const float* x, const float* row, float* y, std::size_t rows, std::size_t columns) noexcept;

}  // namespace weir::bench
