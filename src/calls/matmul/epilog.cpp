#include "calls/matmul/epilog.hpp"

#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "calls/value_type.hpp"

namespace weir::calls {

namespace {

/// Elements in a piece: large enough that what surrounds the inner loop does not count.
constexpr std::int64_t chunk = 1 << 14;

template <class T>
T relu_of(T x) noexcept {
    return x < T(0) ? T(0) : x;  // NaN stays
}

template <class T>
T gelu_of(T x) noexcept {
    constexpr T sqrt_2_over_pi = T(0.79788456080286535588);
    return T(0.5) * x * (T(1) + std::tanh(sqrt_2_over_pi * (x + T(0.044715) * x * x * x)));
}

/// Sets each element of operand 0 to `compute` of it and of the element of operand 1, if there is one.
template <class T, bool HasSecond, class Compute>
void change(const walk::plan& elements, const Compute& compute) {
    constexpr auto item = static_cast<std::int64_t>(sizeof(T));
    const std::int64_t step = elements.column_stride(0) / item;
    const std::int64_t second_step = HasSecond ? elements.column_stride(1) / item : 0;
    elements.for_each_chunk(chunk, [&](const walk::plan::pointers& at, std::int64_t rows, std::int64_t columns) {
        for (std::int64_t row = 0; row < rows; ++row) {
            T* const x = reinterpret_cast<T*>(at[0] + row * elements.row_stride(0));
            if constexpr (HasSecond) {
                const T* const y = reinterpret_cast<const T*>(at[1] + row * elements.row_stride(1));
                for (std::int64_t i = 0; i < columns; ++i) {
                    x[i * step] = compute(x[i * step], y[i * second_step]);
                }
            } else {
                for (std::int64_t i = 0; i < columns; ++i) {
                    x[i * step] = compute(x[i * step]);
                }
            }
        }
    });
}

template <class T>
void apply_to(const walk::plan& elements, matmul_epilog epilog) {
    if (epilog == matmul_epilog::bias) {
        return change<T, true>(elements, [](T x, T bias) { return x + bias; });
    }
    if constexpr (std::is_floating_point_v<T>) {
        switch (epilog) {
            case matmul_epilog::relu:
                return change<T, false>(elements, [](T x) { return relu_of(x); });
            case matmul_epilog::gelu:
                return change<T, false>(elements, [](T x) { return gelu_of(x); });
            case matmul_epilog::relu_bias:
                return change<T, true>(elements, [](T x, T bias) { return relu_of(x + bias); });
            case matmul_epilog::gelu_bias:
                return change<T, true>(elements, [](T x, T bias) { return gelu_of(x + bias); });
            case matmul_epilog::none:
            case matmul_epilog::bias:
                break;
        }
    }
}

template <class T>
void scale_to(const walk::plan& elements, std::complex<double> factor) {
    if (factor == 0.0) {
        return change<T, false>(elements, [](T) { return T(0); });
    }
    T by;
    if constexpr (std::is_floating_point_v<T>) {
        by = static_cast<T>(factor.real());
    } else {
        by = T(factor);
    }
    change<T, false>(elements, [by](T x) { return x * by; });
}

}  // namespace

void scale_elements(const walk::plan& elements, dtype type, std::complex<double> factor) {
    with_value_type(type, [&]<class T>(T) { scale_to<T>(elements, factor); });
}

void apply_epilog(const walk::plan& elements, dtype type, matmul_epilog epilog) {
    if (epilog != matmul_epilog::none) {
        with_value_type(type, [&]<class T>(T) { apply_to<T>(elements, epilog); });
    }
}

}  // namespace weir::calls
