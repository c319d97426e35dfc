#include "elementwise_hand.hpp"

namespace weir::bench {

void hand_axpy(const float* __restrict x, float a, float* __restrict y, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
        y[i] = a * x[i] + 1;
    }
}

void hand_distance(const double* __restrict x, const double* __restrict y, double* __restrict d,
                   std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
        d[i] = (x[i] - y[i]) * (x[i] - y[i]);
    }
}

void hand_bias(const float* __restrict x, const float* __restrict row, float* __restrict y, std::size_t rows,
               std::size_t columns) noexcept {
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < columns; ++c) {
            y[r * columns + c] = x[r * columns + c] + row[c];
        }
    }
}

}  // namespace weir::bench
