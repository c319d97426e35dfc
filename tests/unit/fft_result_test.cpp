// Scenario E10: results against the definition, in higher precision.
#include <gtest/gtest.h>

#include <limits>

#include "support/arrays.hpp"
#include "support/fft_devices.hpp"
#include "weir/fft.hpp"

namespace weir {
namespace {

using test::as_precise;
using test::as_type;
using test::direct_dft;
using test::make_array;
using test::precise;
using test::random_numbers;
using test::relative_error;
using test::values_of;

/// Lengths: one, two, primes, powers of two, products of small primes, a prime square, and large primes.
constexpr std::array<std::int64_t, 18> lengths = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 30, 49, 64, 97, 128, 251, 509, 1009};
constexpr std::int64_t rows = 3;

template <class T>
struct real_of_type {
    using type = T;
};
template <class T>
struct real_of_type<std::complex<T>> {
    using type = T;
};
template <class T>
using real_type = typename real_of_type<T>::type;
template <class T>
using complex_type = std::complex<real_type<T>>;

/// The error of a fast transform grows with the logarithm of its length.
template <class T>
long double tolerance(std::int64_t n) {
    return static_cast<long double>(std::numeric_limits<real_type<T>>::epsilon()) *
           (2 + std::log2(static_cast<long double>(n)));
}

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

/// Row `row` of numbers in rows of `length`, cut or filled up with zeros to `n`.
std::vector<precise> row_of(const std::vector<precise>& all, std::int64_t row, std::int64_t length, std::int64_t n) {
    std::vector<precise> result(size(n));
    std::copy_n(all.begin() + row * length, std::min(length, n), result.begin());
    return result;
}

/// Compares each row of `got`, of `out_length` elements, with `right(row)`.
template <class T, class Right>
void expect_rows(const std::vector<T>& got, std::int64_t out_length, std::int64_t n, Right&& right) {
    ASSERT_EQ(got.size(), size(rows * out_length));
    for (std::int64_t row = 0; row < rows; ++row) {
        EXPECT_LE(relative_error(row_of(as_precise(got), row, out_length, out_length), right(row)), tolerance<T>(n))
            << "n = " << n << ", row " << row;
    }
}

std::vector<precise> scaled(std::vector<precise> numbers, long double factor) {
    for (precise& each : numbers) {
        each *= factor;
    }
    return numbers;
}

/// The whole spectrum of a real signal from its first half, as irfft defines it.
std::vector<precise> mirrored(const std::vector<precise>& half, std::int64_t n) {
    std::vector<precise> whole(size(n));
    for (std::int64_t k = 0; k <= n / 2; ++k) {
        whole[size(k)] = half[size(k)];
        if (k > 0) {
            whole[size(n - k)] = std::conj(half[size(k)]);
        }
    }
    whole[0].imag(0);
    if (n % 2 == 0) {
        whole[size(n / 2)].imag(0);
    }
    return whole;
}

template <class T>
class FftResult : public ::testing::Test {
protected:
    stream on{test::fft_devices().front()};

    /// Rows of random numbers, as the type knows them, and an array of them.
    std::pair<std::vector<precise>, array> rows_of(std::int64_t length) {
        const std::vector<T> values = as_type<T>(random_numbers(size(rows * length), static_cast<unsigned>(length)));
        return {as_precise(values), make_array(on, {rows, length}, values)};
    }
};

template <class T>
class RealFftResult : public FftResult<T> {};
template <class T>
class ComplexFftResult : public FftResult<T> {};

using real_types = ::testing::Types<float, double>;
using complex_types = ::testing::Types<std::complex<float>, std::complex<double>>;
using all_types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(FftResult, all_types);
TYPED_TEST_SUITE(RealFftResult, real_types);
TYPED_TEST_SUITE(ComplexFftResult, complex_types);

TYPED_TEST(FftResult, ForwardAndInverseAreTheDefinition) {
    for (const std::int64_t n : lengths) {
        const auto [numbers, a] = this->rows_of(n);
        const auto forward = values_of<complex_type<TypeParam>>(fft::fft(this->on, a));
        expect_rows(forward, n, n, [&, &x = numbers](auto row) { return direct_dft(row_of(x, row, n, n), -1); });
        const auto inverse = values_of<complex_type<TypeParam>>(fft::ifft(this->on, a));
        expect_rows(inverse, n, n, [&, &x = numbers](auto row) {
            return scaled(direct_dft(row_of(x, row, n, n), +1), 1.0L / static_cast<long double>(n));
        });
        EXPECT_EQ(as_precise(values_of<TypeParam>(a)), numbers) << "the operand must stay as it is";
    }
}

TYPED_TEST(FftResult, RowsAreCutOrFilledUpWithZeros) {
    constexpr std::int64_t length = 12;
    for (const std::int64_t n : {1, 5, 11, 13, 24, 31}) {
        const auto [numbers, a] = this->rows_of(length);
        const auto got = values_of<complex_type<TypeParam>>(fft::fft(this->on, a, {.n = n}));
        expect_rows(got, n, n, [&, &x = numbers](auto row) { return direct_dft(row_of(x, row, length, n), -1); });
    }
}

TYPED_TEST(FftResult, NormsAreThoseOfNumpy) {
    constexpr std::int64_t n = 20;
    const long double whole = 1.0L / n;
    const long double root = std::sqrt(whole);
    const auto [numbers, a] = this->rows_of(n);
    struct expected {
        fft_norm norm;
        long double forward, inverse;
    };
    for (const expected& e : {expected{fft_norm::backward, 1, whole}, expected{fft_norm::ortho, root, root},
                              expected{fft_norm::forward, whole, 1}}) {
        const auto forward = values_of<complex_type<TypeParam>>(fft::fft(this->on, a, {.norm = e.norm}));
        expect_rows(forward, n, n,
                    [&, &x = numbers](auto row) { return scaled(direct_dft(row_of(x, row, n, n), -1), e.forward); });
        const auto inverse = values_of<complex_type<TypeParam>>(fft::ifft(this->on, a, {.norm = e.norm}));
        expect_rows(inverse, n, n,
                    [&, &x = numbers](auto row) { return scaled(direct_dft(row_of(x, row, n, n), +1), e.inverse); });
    }
}

TYPED_TEST(RealFftResult, RealTransformsAreHalfOfTheDefinition) {
    for (const std::int64_t n : lengths) {
        for (const std::int64_t length : {n, n + 3, std::max<std::int64_t>(1, n - 2)}) {
            const auto [numbers, a] = this->rows_of(length);
            const auto got = values_of<complex_type<TypeParam>>(fft::rfft(this->on, a, {.n = n}));
            expect_rows(got, n / 2 + 1, n, [&, &x = numbers](auto row) {
                std::vector<precise> half = direct_dft(row_of(x, row, length, n), -1);
                half.resize(size(n / 2 + 1));
                return half;
            });
        }
    }
}

TYPED_TEST(ComplexFftResult, InverseRealTransformsMirrorTheirOperand) {
    for (const std::int64_t n : lengths) {
        const std::int64_t half = n / 2 + 1;
        for (const std::int64_t length : {half, half + 3, std::max<std::int64_t>(1, half - 2)}) {
            const auto [numbers, a] = this->rows_of(length);
            const auto got = values_of<real_type<TypeParam>>(fft::irfft(this->on, a, {.n = n}));
            expect_rows(got, n, n, [&, &x = numbers](auto row) {
                return scaled(direct_dft(mirrored(row_of(x, row, length, half), n), +1),
                              1.0L / static_cast<long double>(n));
            });
            EXPECT_EQ(as_precise(values_of<TypeParam>(a)), numbers) << "the operand must stay as it is, n = " << n;
        }
    }
}

TYPED_TEST(ComplexFftResult, InPlaceGivesTheSame) {
    for (const std::int64_t n : lengths) {
        auto [numbers, a] = this->rows_of(n);
        fft::fft(this->on, a, a);
        expect_rows(values_of<TypeParam>(a), n, n,
                    [&, &x = numbers](auto row) { return direct_dft(row_of(x, row, n, n), -1); });
    }
}

TYPED_TEST(FftResult, SlicesNeedNoAlignment) {
    // The second row of an odd length begins anywhere.
    constexpr std::int64_t n = 15;
    const auto [numbers, a] = this->rows_of(n);
    array out = zeros({rows, n}, dtype_of<complex_type<TypeParam>>, this->on);
    for (std::int64_t row = 0; row < rows; ++row) {
        fft::fft(this->on, a.slice(row, row + 1), out.slice(row, row + 1));
    }
    expect_rows(values_of<complex_type<TypeParam>>(out), n, n,
                [&, &x = numbers](auto row) { return direct_dft(row_of(x, row, n, n), -1); });
}

TEST(FftShapes, AllAxesButTheLastAreTheBatch) {
    const stream on;
    array a = zeros({2, 3, 8}, dtype::float32, on);
    EXPECT_EQ(fft::rfft(on, a).shape(), (shape{2, 3, 5}));
    EXPECT_EQ(fft::fft(on, a, {.n = 6}).shape(), (shape{2, 3, 6}));
    EXPECT_EQ(fft::irfft(on, fft::rfft(on, a)).shape(), (shape{2, 3, 8}));
    EXPECT_EQ(fft::rfft(on, a).dtype(), dtype::complex64);
    EXPECT_EQ(fft::irfft(on, fft::rfft(on, a)).dtype(), dtype::float32);
}

TEST(FftShapes, AnEmptyBatchIsNoWork) {
    const stream on;
    array a = zeros({0, 8}, dtype::float64, on);
    array b = fft::fft(on, a);
    EXPECT_EQ(b.shape(), (shape{0, 8}));
    EXPECT_EQ(fft::irfft(on, fft::rfft(on, a)).shape(), (shape{0, 8}));
}

TEST(FftShapes, ZerosWhereAnEmptyAxisIsFilledUp) {
    const stream on;
    array a = zeros({2, 0}, dtype::complex128, on);
    for (const std::complex<double>& each : values_of<std::complex<double>>(fft::fft(on, a, {.n = 3}))) {
        EXPECT_EQ(each, 0.0);
    }
    EXPECT_EQ(values_of<double>(fft::irfft(on, a, {.n = 3})), std::vector<double>(6));
}

}  // namespace
}  // namespace weir
