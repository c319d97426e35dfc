// Scenario E10 along several axes: every choice of axes, lengths, norms and layouts, on each device, against the
// definition in higher precision. Errors are those of the whole result, by norm.
#include <gtest/gtest.h>

#include <limits>
#include <type_traits>

#include "support/arrays.hpp"
#include "support/dft_axes.hpp"
#include "support/fft_devices.hpp"
#include "weir/fft.hpp"

namespace weir {
namespace {

using test::as_precise;
using test::as_type;
using test::block;
using test::direct_fftn;
using test::direct_irfftn;
using test::direct_rfftn;
using test::make_array;
using test::precise;
using test::relative_error;
using test::scaled;
using test::values_of;

using extents = std::vector<std::int64_t>;
using axis_numbers = std::vector<std::size_t>;

template <class T>
struct precision {
    using real = T;
};
template <class T>
struct precision<std::complex<T>> {
    using real = T;
};
template <class T>
using real_type = typename precision<T>::real;
template <class T>
using complex_type = std::complex<real_type<T>>;

/// All choices of one to three axes of an array, in every order: the last one is what real transforms halve.
std::vector<axis_numbers> choices_of_axes(std::size_t dimensions) {
    std::vector<axis_numbers> all;
    for (std::size_t a = 0; a < dimensions; ++a) {
        all.push_back({a});
        for (std::size_t b = 0; b < dimensions; ++b) {
            if (b == a) {
                continue;
            }
            all.push_back({a, b});
            for (std::size_t c = 0; c < dimensions; ++c) {
                if (c != a && c != b) {
                    all.push_back({a, b, c});
                }
            }
        }
    }
    return all;
}

/// Names the last axis from the end, the others from the start.
extents named(const axis_numbers& axes, std::size_t dimensions) {
    extents names(axes.begin(), axes.end());
    names.back() -= static_cast<std::int64_t>(dimensions);
    return names;
}

shape shape_of(const extents& e) { return shape(std::span<const std::int64_t>(e)); }

long double product(const extents& n) { return static_cast<long double>(test::elements_of(n)); }

template <class T>
class FftAxes : public ::testing::Test {
protected:
    /// Numbers as the type knows them.
    static block numbers(const extents& e, unsigned seed = 1) {
        block b = test::random_block(e, seed);
        b.numbers = as_precise(as_type<T>(b.numbers));
        return b;
    }
    static array array_of(const stream& on, const block& b) {
        return make_array(on, shape_of(b.shape), as_type<T>(b.numbers));
    }
    /// The error of a fast transform grows with the logarithm of its length.
    static long double tolerance(const extents& n) {
        return static_cast<long double>(std::numeric_limits<real_type<T>>::epsilon()) * (2 + std::log2(product(n)));
    }
    template <class U>
    static void expect_near(const array& got, const block& right, const extents& n) {
        ASSERT_EQ(got.shape(), shape_of(right.shape));
        EXPECT_LE(relative_error(as_precise(values_of<U>(got)), right.numbers), tolerance(n));
    }
};

template <class T>
class RealFftAxes : public FftAxes<T> {};
template <class T>
class ComplexFftAxes : public FftAxes<T> {};
using all_types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(FftAxes, all_types);
using real_types = ::testing::Types<float, double>;
using complex_types = ::testing::Types<std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(RealFftAxes, real_types);
TYPED_TEST_SUITE(ComplexFftAxes, complex_types);

const std::vector<extents> shapes = {{6}, {4, 7}, {3, 4, 5}, {2, 5, 1, 6}};

/// Calls `check(stream, shape, axes, lengths, options)` for all devices, shapes and choices of axes, with lengths as they
/// are (`change` 0), or cut and filled up in turn.
template <class Check>
void for_all(std::int64_t change, Check&& check) {
    for (const device& where : test::fft_devices()) {
        const stream on(where);
        for (const extents& e : shapes) {
            for (const axis_numbers& axes : choices_of_axes(e.size())) {
                extents n;
                for (const std::size_t axis : axes) {
                    n.push_back(std::max<std::int64_t>(1, e[axis] + (axis % 2 == 0 ? change : -change)));
                }
                fft::options how;
                how.axes = named(axes, e.size());
                if (change != 0) {
                    how.s = n;
                }
                SCOPED_TRACE(where.name() + " " + shape_of(e).to_string() + " axes " + shape_of(n).to_string());
                check(on, e, axes, n, how);
            }
        }
    }
}

TYPED_TEST(FftAxes, E10ForwardAndInverseAreTheDefinition) {
    for (const std::int64_t change : {0, 3, -2}) {
        for_all(change, [](const stream& on, const extents& e, const axis_numbers& axes, const extents& n,
                           const fft::options& how) {
            const block x = TestFixture::numbers(e);
            array a = TestFixture::array_of(on, x);
            TestFixture::template expect_near<complex_type<TypeParam>>(fft::fftn(on, a, how),
                                                                       direct_fftn(x, axes, n, -1), n);
            TestFixture::template expect_near<complex_type<TypeParam>>(
                fft::ifft(on, a, how), scaled(direct_fftn(x, axes, n, +1), 1 / product(n)), n);
            EXPECT_EQ(as_precise(values_of<TypeParam>(a)), x.numbers) << "the operand must stay as it is";
        });
    }
}

TYPED_TEST(FftAxes, E10ControlOneElementThatIsSlightlyWrongIsFound) {
    const extents e = {4, 7};
    const block x = TestFixture::numbers(e);
    block right = direct_fftn(x, {0, 1}, e, -1);
    for (const device& where : test::fft_devices()) {
        const stream on(where);
        array got = fft::fftn(on, TestFixture::array_of(on, x), {.axes = extents{0, 1}});
        block wrong{e, as_precise(values_of<complex_type<TypeParam>>(got))};
        EXPECT_LE(relative_error(wrong.numbers, right.numbers), TestFixture::tolerance(e));
        wrong.numbers[5] += 3 * TestFixture::tolerance(e) * test::norm(right.numbers);
        EXPECT_GT(relative_error(wrong.numbers, right.numbers), TestFixture::tolerance(e));
    }
}

TYPED_TEST(RealFftAxes, E10RealTransformsAreHalfOfTheDefinition) {
    for (const std::int64_t change : {0, 3, -2}) {
        for_all(change, [](const stream& on, const extents& e, const axis_numbers& axes, const extents& n,
                           const fft::options& how) {
            const block x = TestFixture::numbers(e);
            array a = TestFixture::array_of(on, x);
            TestFixture::template expect_near<complex_type<TypeParam>>(fft::rfftn(on, a, how), direct_rfftn(x, axes, n),
                                                                       n);
            EXPECT_EQ(as_precise(values_of<TypeParam>(a)), x.numbers) << "the operand must stay as it is";
        });
    }
}

TYPED_TEST(ComplexFftAxes, E10InverseRealTransformsMirrorTheirOperand) {
    for (const std::int64_t change : {0, 3, -2}) {
        for_all(change, [](const stream& on, const extents& e, const axis_numbers& axes, extents n, fft::options how) {
            const block x = TestFixture::numbers(e);
            array a = TestFixture::array_of(on, x);
            if (how.s.empty()) {
                n.back() = 2 * (e[axes.back()] - 1);
                if (n.back() == 0) {
                    return;  // one element: only a given length is possible
                }
            }
            TestFixture::template expect_near<real_type<TypeParam>>(
                fft::irfftn(on, a, how), scaled(direct_irfftn(x, axes, n), 1 / product(n)), n);
            EXPECT_EQ(as_precise(values_of<TypeParam>(a)), x.numbers) << "the operand must stay as it is";
        });
    }
}

TYPED_TEST(ComplexFftAxes, InPlaceGivesTheSame) {
    for_all(
        0, [](const stream& on, const extents& e, const axis_numbers& axes, const extents& n, const fft::options& how) {
            const block x = TestFixture::numbers(e);
            array a = TestFixture::array_of(on, x);
            fft::fftn(on, a, a, how);
            TestFixture::template expect_near<TypeParam>(a, direct_fftn(x, axes, n, -1), n);
        });
}

TYPED_TEST(ComplexFftAxes, E10LongAndPrimeLengths) {
    const stream on;
    const std::int64_t prime = std::is_same_v<TypeParam, std::complex<double>> ? 4099 : 1021;
    for (const extents& e : {extents{1, prime}, extents{2, 625}, extents{127, 31}, extents{512, 9}}) {
        const block x = TestFixture::numbers(e);
        TestFixture::template expect_near<TypeParam>(fft::fftn(on, TestFixture::array_of(on, x)),
                                                     direct_fftn(x, {0, 1}, e, -1), e);
    }
}

TYPED_TEST(FftAxes, NormsAreThoseOfNumpy) {
    const stream on;
    const extents n = {4, 5};
    const block x = TestFixture::numbers({4, 3, 5});
    array a = TestFixture::array_of(on, x);
    const block forward = direct_fftn(x, {0, 2}, n, -1);
    const block inverse = direct_fftn(x, {0, 2}, n, +1);
    const long double whole = 1.0L / 20;
    struct expected {
        fft_norm norm;
        long double forward, inverse;
    };
    for (const expected& e :
         {expected{fft_norm::backward, 1, whole}, expected{fft_norm::ortho, std::sqrt(whole), std::sqrt(whole)},
          expected{fft_norm::forward, whole, 1}}) {
        fft::options how;
        how.axes = {0, 2};
        how.norm = e.norm;
        TestFixture::template expect_near<complex_type<TypeParam>>(fft::fftn(on, a, how), scaled(forward, e.forward),
                                                                   n);
        TestFixture::template expect_near<complex_type<TypeParam>>(fft::ifftn(on, a, how), scaled(inverse, e.inverse),
                                                                   n);
    }
}

TYPED_TEST(RealFftAxes, RealTransformsInPlaceWhereARowHasRoom) {
    // One row: 2 (n/2 + 1) real numbers, of which the operand is the first n; the spectrum lies over all of them.
    using real = TypeParam;
    using complex = complex_type<TypeParam>;
    const stream on;
    for (const std::int64_t n : {1, 8, 9}) {
        const buffer memory(static_cast<std::size_t>(n / 2 + 1) * sizeof(complex), on);
        array signal(memory, dtype_of<real>, {1, n});
        array spectrum(memory, dtype_of<complex>, {1, n / 2 + 1});
        const block x = TestFixture::numbers({1, n});
        const std::vector<real> values = as_type<real>(x.numbers);
        copy_from_host(on, signal, std::as_bytes(std::span(values)));
        fft::rfft(on, signal, spectrum);
        TestFixture::template expect_near<complex>(spectrum, direct_rfftn(x, {1}, {n}), {n});
        fft::irfft(on, spectrum, signal, {.n = n});
        EXPECT_LE(relative_error(as_precise(values_of<real>(signal)), x.numbers), 2 * TestFixture::tolerance({n}));
    }
}

TEST(FftShapes, DefaultsAreThoseOfNumpy) {
    const stream on;
    array a = zeros({4, 6, 10}, dtype::float32, on);
    EXPECT_EQ(fft::rfft(on, a).shape(), (shape{4, 6, 6}));
    EXPECT_EQ(fft::rfft(on, a, {.axis = 0}).shape(), (shape{3, 6, 10}));
    EXPECT_EQ(fft::rfft(on, a, {.n = 7, .axis = -2}).shape(), (shape{4, 4, 10}));
    EXPECT_EQ(fft::rfft(on, a, {.axes = {0, 1}}).shape(), (shape{4, 4, 10}));
    EXPECT_EQ(fft::rfftn(on, a).shape(), (shape{4, 6, 6}));
    EXPECT_EQ(fft::rfftn(on, a, {.s = {-1, 3, 4}}).shape(), (shape{4, 3, 3}));
    EXPECT_EQ(fft::irfftn(on, fft::rfftn(on, a)).shape(), (shape{4, 6, 10}));
    EXPECT_EQ(fft::irfftn(on, fft::rfftn(on, a)).dtype(), dtype::float32);
    EXPECT_EQ(values_of<std::complex<float>>(fft::fftn(on, full({2, 2}, 1, dtype::float32, on)))[0], 4.0F);
    EXPECT_EQ(values_of<std::complex<float>>(fft::fft(on, full({2, 2}, 1, dtype::float32, on)))[0], 2.0F);
}

TEST(FftShapes, OneElement) {
    const stream on;
    array one = full({1, 1, 1}, 3, dtype::complex128, on);
    EXPECT_EQ(values_of<std::complex<double>>(fft::fftn(on, one)), (std::vector<std::complex<double>>{3}));
    EXPECT_EQ(values_of<std::complex<double>>(fft::ifftn(on, one)), (std::vector<std::complex<double>>{3}));
    EXPECT_EQ(values_of<double>(fft::irfftn(on, one, {.s = {1, 1, 1}})), (std::vector<double>{3}));
}

TEST(FftShapes, NoElementsAlongOneOfTheAxesIsNoWorkOrZeros) {
    const stream on;
    array none = zeros({3, 0, 4}, dtype::complex64, on);
    EXPECT_EQ(fft::fftn(on, none, {.axes = {0, 2}}).shape(), (shape{3, 0, 4}));
    EXPECT_EQ(values_of<std::complex<float>>(fft::fftn(on, none, {.s = {3, 2, 4}})),
              std::vector<std::complex<float>>(24));
}

}  // namespace
}  // namespace weir
