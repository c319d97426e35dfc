#pragma once

#include <complex>
#include <type_traits>

#include "weir/dtype.hpp"

namespace weir::calls {

/// Calls `work` with a value of the type in which libraries compute: float32, float64, complex64, else complex128.
template <class Work>
void with_value_type(dtype type, const Work& work) {
    if (type == dtype::float32) {
        work(float{});
    } else if (type == dtype::float64) {
        work(double{});
    } else if (type == dtype::complex64) {
        work(std::complex<float>{});
    } else {
        work(std::complex<double>{});
    }
}

/// The conjugate; of a real number that itself.
template <class T>
[[nodiscard]] T conjugate_of(const T& value) noexcept {
    if constexpr (std::is_floating_point_v<T>) {
        return value;
    } else {
        return std::conj(value);
    }
}

}  // namespace weir::calls
