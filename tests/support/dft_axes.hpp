// Discrete Fourier transforms along several axes by their definition, in long double.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "support/dft.hpp"

namespace weir::test {

/// Numbers in C order under a shape.
struct block {
    std::vector<std::int64_t> shape;
    std::vector<precise> numbers;
};

inline std::int64_t elements_of(const std::vector<std::int64_t>& shape) {
    std::int64_t product = 1;
    for (const std::int64_t extent : shape) {
        product *= extent;
    }
    return product;
}

inline block random_block(std::vector<std::int64_t> shape, unsigned seed) {
    const auto count = static_cast<std::size_t>(elements_of(shape));
    return {std::move(shape), random_numbers(count, seed)};
}

/// Replaces each line along an axis, of `length` numbers, by `fn(line)`.
template <class F>
block along(const block& of, std::size_t axis, std::int64_t length, F&& fn) {
    const auto count = [](auto first, auto last) { return elements_of(std::vector<std::int64_t>(first, last)); };
    const auto here = of.shape.begin() + static_cast<std::ptrdiff_t>(axis);
    const std::int64_t outer = count(of.shape.begin(), here);
    const std::int64_t inner = count(here + 1, of.shape.end());
    const std::int64_t extent = *here;
    block result{of.shape, {}};
    result.shape[axis] = length;
    result.numbers.resize(static_cast<std::size_t>(elements_of(result.shape)));
    std::vector<precise> line(static_cast<std::size_t>(extent));
    for (std::int64_t i = 0; i < outer; ++i) {
        for (std::int64_t k = 0; k < inner; ++k) {
            for (std::int64_t j = 0; j < extent; ++j) {
                line[static_cast<std::size_t>(j)] = of.numbers[static_cast<std::size_t>((i * extent + j) * inner + k)];
            }
            const std::vector<precise> made = fn(line);
            for (std::int64_t j = 0; j < length; ++j) {
                result.numbers[static_cast<std::size_t>((i * length + j) * inner + k)] =
                    made[static_cast<std::size_t>(j)];
            }
        }
    }
    return result;
}

/// Cuts an axis, or pads it with zeros.
inline block resized(const block& of, std::size_t axis, std::int64_t length) {
    return along(of, axis, length, [&](std::vector<precise> line) {
        line.resize(static_cast<std::size_t>(length));
        return line;
    });
}

inline block transformed(const block& of, std::size_t axis, int sign) {
    return along(of, axis, of.shape[axis], [&](const std::vector<precise>& line) { return direct_dft(line, sign); });
}

/// The whole spectrum of a real signal of length n from its first half.
inline std::vector<precise> mirrored(const std::vector<precise>& half, std::int64_t n) {
    const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
    std::vector<precise> whole(at(n));
    for (std::int64_t k = 0; k <= n / 2; ++k) {
        whole[at(k)] = half[at(k)];
        if (k > 0) {
            whole[at(n - k)] = std::conj(half[at(k)]);
        }
    }
    whole[0].imag(0);
    if (n % 2 == 0) {
        whole[at(n / 2)].imag(0);
    }
    return whole;
}

inline block scaled(block of, long double factor) {
    for (precise& each : of.numbers) {
        each *= factor;
    }
    return of;
}

/// fftn (sign -1) or ifftn (sign +1, without its factor), to the lengths `n`.
inline block direct_fftn(block of, const std::vector<std::size_t>& axes, const std::vector<std::int64_t>& n, int sign) {
    for (std::size_t i = 0; i < axes.size(); ++i) {
        of = transformed(resized(of, axes[i], n[i]), axes[i], sign);
    }
    return of;
}

/// rfftn.
inline block direct_rfftn(const block& of, const std::vector<std::size_t>& axes, const std::vector<std::int64_t>& n) {
    return resized(direct_fftn(of, axes, n, -1), axes.back(), n.back() / 2 + 1);
}

/// irfftn, without its factor: ifft along all axes but the last one named, then the real inverse along that.
inline block direct_irfftn(block of, const std::vector<std::size_t>& axes, const std::vector<std::int64_t>& n) {
    for (std::size_t i = 0; i + 1 < axes.size(); ++i) {
        of = transformed(resized(of, axes[i], n[i]), axes[i], +1);
    }
    const std::int64_t last = n.back();
    return along(resized(of, axes.back(), last / 2 + 1), axes.back(), last,
                 [&](const std::vector<precise>& half) { return direct_dft(mirrored(half, last), +1); });
}

}  // namespace weir::test
