// A discrete Fourier transform by its definition, to compare others with.
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <numbers>
#include <random>
#include <vector>

namespace weir::test {

using precise = std::complex<long double>;

/// X[k] = sum of x[j] exp(sign 2 pi i j k / n), in n * n steps.
inline std::vector<precise> direct_dft(const std::vector<precise>& x, int sign) {
    const std::size_t n = x.size();
    std::vector<precise> roots(n);
    for (std::size_t j = 0; j < n; ++j) {
        const long double angle =
            sign * 2 * std::numbers::pi_v<long double> * static_cast<long double>(j) / static_cast<long double>(n);
        roots[j] = {std::cos(angle), std::sin(angle)};
    }
    std::vector<precise> result(n);
    for (std::size_t k = 0; k < n; ++k) {
        std::size_t at = 0;  // j * k modulo n
        for (std::size_t j = 0; j < n; ++j) {
            result[k] += x[j] * roots[at];
            at += k;
            at -= at >= n ? n : 0;
        }
    }
    return result;
}

inline long double norm(const std::vector<precise>& x) {
    long double sum = 0;
    for (const precise& each : x) {
        sum += std::norm(each);
    }
    return std::sqrt(sum);
}

/// The norm of the difference, divided by the norm of the right result.
inline long double relative_error(const std::vector<precise>& got, const std::vector<precise>& right) {
    std::vector<precise> difference(right);
    for (std::size_t i = 0; i < right.size(); ++i) {
        difference[i] -= got[i];
    }
    const long double size = norm(right);
    return size == 0 ? norm(difference) : norm(difference) / size;
}

/// Numbers between -1 and 1, the same for the same seed on every machine.
inline std::vector<precise> random_numbers(std::size_t count, unsigned seed) {
    std::mt19937 generator(seed);
    const auto next = [&] { return static_cast<long double>(generator()) / 2147483648.0L - 1; };
    std::vector<precise> numbers(count);
    for (precise& each : numbers) {
        const long double real = next();
        each = {real, next()};
    }
    return numbers;
}

}  // namespace weir::test
