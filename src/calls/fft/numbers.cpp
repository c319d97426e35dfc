#include "calls/fft/numbers.hpp"

#include <algorithm>
#include <complex>
#include <span>

namespace weir::calls {

namespace {

using filled = std::span<const filled_dimension>;

template <class To>
void clear(filled dimensions, To* target) {
    const filled_dimension& d = dimensions.front();
    if (dimensions.size() == 1) {
        for (std::int64_t i = 0; i < d.to_n; ++i) {
            target[i * d.to_stride] = To{};
        }
        return;
    }
    for (std::int64_t i = 0; i < d.to_n; ++i) {
        clear(dimensions.subspan(1), target + i * d.to_stride);
    }
}

template <class From, class To>
void fill(filled dimensions, const From* source, To* target) {
    const filled_dimension& d = dimensions.front();
    const std::int64_t copied = std::min(d.from_n, d.to_n);
    if (dimensions.size() == 1) {
        for (std::int64_t i = 0; i < copied; ++i) {
            target[i * d.to_stride] = source[i * d.from_stride];
        }
    } else {
        for (std::int64_t i = 0; i < copied; ++i) {
            fill(dimensions.subspan(1), source + i * d.from_stride, target + i * d.to_stride);
        }
    }
    for (std::int64_t i = copied; i < d.to_n; ++i) {
        if (dimensions.size() == 1) {
            target[i * d.to_stride] = To{};
        } else {
            clear(dimensions.subspan(1), target + i * d.to_stride);
        }
    }
}

template <class T>
void fill_with(const filling& how, const std::byte* source, std::byte* target) {
    // The types are those of the arrays that own the memory.
    using complex = std::complex<T>;
    if (is_complex(how.from)) {
        fill(how.dimensions, reinterpret_cast<const complex*>(source), reinterpret_cast<complex*>(target));
    } else if (is_complex(how.to)) {
        fill(how.dimensions, reinterpret_cast<const T*>(source), reinterpret_cast<complex*>(target));
    } else {
        fill(how.dimensions, reinterpret_cast<const T*>(source), reinterpret_cast<T*>(target));
    }
}

template <class T>
void scale(std::span<const number_dimension> dimensions, T* numbers, T factor) noexcept {
    const number_dimension& d = dimensions.front();
    if (dimensions.size() == 2 && dimensions[1].n == 2 && dimensions[1].stride == 1) {
        for (std::int64_t i = 0; i < d.n; ++i) {  // complex elements that do not lie one after the other
            numbers[i * d.stride] *= factor;
            numbers[i * d.stride + 1] *= factor;
        }
    } else if (dimensions.size() > 1) {
        for (std::int64_t i = 0; i < d.n; ++i) {
            scale(dimensions.subspan(1), numbers + i * d.stride, factor);
        }
    } else if (d.stride == 1) {
        for (T& number : std::span(numbers, static_cast<std::size_t>(d.n))) {
            number *= factor;
        }
    } else {
        for (std::int64_t i = 0; i < d.n; ++i) {
            numbers[i * d.stride] *= factor;
        }
    }
}

}  // namespace

void filling::run(const std::byte* source, std::byte* target) const {
    if (from == dtype::float32 || from == dtype::complex64) {
        fill_with<float>(*this, source, target);
    } else {
        fill_with<double>(*this, source, target);
    }
}

void scaling::run(std::byte* numbers) const noexcept {
    if (factor == 1.0) {
        return;
    }
    if (double_precision) {
        scale(dimensions, reinterpret_cast<double*>(numbers), factor);
    } else {
        scale(dimensions, reinterpret_cast<float*>(numbers), static_cast<float>(factor));
    }
}

}  // namespace weir::calls
