#include "calls/fft_rows.hpp"

#include <algorithm>
#include <complex>
#include <span>

namespace weir::calls {

namespace {

template <class From, class To>
void fill_rows(const rows& how, const From* source, To* target) {
    const std::int64_t copied = std::min(how.from_length, how.to_length);
    for (std::int64_t row = 0; row < how.count; ++row) {
        To* const rest = std::copy_n(source + row * how.from_length, copied, target + row * how.to_distance);
        std::fill_n(rest, how.to_length - copied, To{});
    }
}

template <class T>
void fill_rows_of(const rows& how, const std::byte* source, std::byte* target) {
    // The types are those of the arrays that the memory belongs to.
    if (is_complex(how.from)) {
        fill_rows(how, reinterpret_cast<const std::complex<T>*>(source), reinterpret_cast<std::complex<T>*>(target));
    } else if (is_complex(how.to)) {
        fill_rows(how, reinterpret_cast<const T*>(source), reinterpret_cast<std::complex<T>*>(target));
    } else {
        fill_rows(how, reinterpret_cast<const T*>(source), reinterpret_cast<T*>(target));
    }
}

template <class T>
void scale_numbers(T* numbers, std::int64_t count, T factor) noexcept {
    for (T& number : std::span(numbers, static_cast<std::size_t>(count))) {
        number *= factor;
    }
}

bool is_single(dtype type) noexcept { return type == dtype::float32 || type == dtype::complex64; }

}  // namespace

void rows::fill(const std::byte* source, std::byte* target) const {
    if (is_single(from)) {
        fill_rows_of<float>(*this, source, target);
    } else {
        fill_rows_of<double>(*this, source, target);
    }
}

void scale(dtype type, std::byte* numbers, std::int64_t count, double factor) noexcept {
    if (factor == 1.0) {
        return;
    }
    if (is_single(type)) {
        scale_numbers(reinterpret_cast<float*>(numbers), count, static_cast<float>(factor));
    } else {
        scale_numbers(reinterpret_cast<double*>(numbers), count, factor);
    }
}

}  // namespace weir::calls
