// Element types: names, sizes, and the two floating-point formats that no processor register has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>

#include "support/messages.hpp"
#include "weir/dtype.hpp"
#include "weir/error.hpp"
#include "weir/scalar.hpp"

namespace weir {
namespace {

using test::message_of;

TEST(Dtype, NamesAreFoundAgain) {
    EXPECT_EQ(arithmetic_dtypes().size(), 15U);
    EXPECT_EQ(all_dtypes().size(), 30U);
    for (const dtype type : all_dtypes()) {
        EXPECT_EQ(dtype_from_name(name_of(type)), type);
    }
    EXPECT_EQ(name_of(dtype::bool_), "bool");
    EXPECT_EQ(name_of(dtype::bfloat16), "bfloat16");
    EXPECT_EQ(
        message_of<argument_type_error>([] { (void)dtype_from_name("float8"); }),
        "no element type is called \"float8\": take one of bool, int8, int16, int32, int64, uint8, uint16, uint32, "
        "uint64, float16, bfloat16, float32, float64, complex64, complex128, float8_e3m4, float8_e4m3, "
        "float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu, "
        "float6_e2m3fn, float6_e3m2fn, float4_e2m1fn, int2, int4, uint2, uint4");
    EXPECT_THROW((void)dtype_from_name(""), argument_type_error);
}

template <class T>
void expect_type(dtype type, dtype_kind kind, std::size_t alignment = alignof(T)) {
    EXPECT_EQ(dtype_of<T>, type) << name_of(type);
    EXPECT_EQ(size_of(type), sizeof(T)) << name_of(type);
    EXPECT_EQ(alignment_of(type), alignment) << name_of(type);
    EXPECT_EQ(kind_of(type), kind) << name_of(type);
    EXPECT_EQ(is_complex(type), kind == dtype_kind::complex) << name_of(type);
    EXPECT_EQ(is_real(type), kind == dtype_kind::real) << name_of(type);
    EXPECT_EQ(is_integer(type), (std::is_integral_v<T> && !std::is_same_v<T, bool>)) << name_of(type);
}

TEST(Dtype, BelongsToACxxType) {
    expect_type<bool>(dtype::bool_, dtype_kind::boolean);
    expect_type<std::int8_t>(dtype::int8, dtype_kind::signed_integer);
    expect_type<std::int16_t>(dtype::int16, dtype_kind::signed_integer);
    expect_type<std::int32_t>(dtype::int32, dtype_kind::signed_integer);
    expect_type<long>(dtype::int64, dtype_kind::signed_integer);
    expect_type<long long>(dtype::int64, dtype_kind::signed_integer);
    expect_type<std::uint8_t>(dtype::uint8, dtype_kind::unsigned_integer);
    expect_type<std::uint16_t>(dtype::uint16, dtype_kind::unsigned_integer);
    expect_type<std::uint32_t>(dtype::uint32, dtype_kind::unsigned_integer);
    expect_type<unsigned long>(dtype::uint64, dtype_kind::unsigned_integer);
    expect_type<unsigned long long>(dtype::uint64, dtype_kind::unsigned_integer);
    expect_type<float16>(dtype::float16, dtype_kind::real);
    expect_type<bfloat16>(dtype::bfloat16, dtype_kind::real);
    expect_type<float>(dtype::float32, dtype_kind::real);
    expect_type<double>(dtype::float64, dtype_kind::real);
    expect_type<std::complex<float>>(dtype::complex64, dtype_kind::complex);
    expect_type<std::complex<double>>(dtype::complex128, dtype_kind::complex);
}

/// A 16-bit format by its definition: sign, exponent, fraction.
template <int ExponentBits>
struct format {
    static constexpr int fraction_bits = 15 - ExponentBits;
    static constexpr int bias = (1 << (ExponentBits - 1)) - 1;

    static double value(unsigned bits) {
        const int exponent = static_cast<int>(bits >> fraction_bits & ((1U << ExponentBits) - 1));
        const int fraction = static_cast<int>(bits & ((1U << fraction_bits) - 1));
        const double sign = (bits >> 15U) != 0 ? -1.0 : 1.0;
        if (exponent == (1 << ExponentBits) - 1) {
            return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                                 : sign * std::numeric_limits<double>::infinity();
        }
        const int whole = exponent == 0 ? fraction : fraction + (1 << fraction_bits);
        return sign * std::ldexp(whole, std::max(exponent, 1) - bias - fraction_bits);
    }

    static constexpr unsigned infinity = ((1U << ExponentBits) - 1) << fraction_bits;

    /// The nearest number by search; of two equally near ones that with the even fraction.
    static unsigned nearest(double wanted) {
        const unsigned sign = std::signbit(wanted) ? 0x8000U : 0U;
        const double size = std::fabs(wanted);
        unsigned low = 0;
        unsigned high = infinity;
        while (high - low > 1) {
            const unsigned middle = (low + high) / 2;
            (value(middle) <= size ? low : high) = middle;
        }
        // What infinity would be if the format went on: numbers from half the way there are rounded to it.
        const double above = high == infinity ? std::ldexp(1.0, bias + 1) : value(high);
        const double down = size - value(low);
        const double up = above - size;
        return sign | (down < up || (down == up && low % 2 == 0) ? low : high);
    }
};

template <class T>
class ShortFloat : public ::testing::Test {};

template <class T>
using format_of = format<std::is_same_v<T, float16> ? 5 : 8>;

using short_floats = ::testing::Types<float16, bfloat16>;
TYPED_TEST_SUITE(ShortFloat, short_floats);

TYPED_TEST(ShortFloat, AllValuesAreExactAndComeBack) {
    for (unsigned bits = 0; bits < 0x10000U; ++bits) {
        const auto one = TypeParam::from_bits(static_cast<std::uint16_t>(bits));
        const double wanted = format_of<TypeParam>::value(bits);
        const float value = one;
        if (std::isnan(wanted)) {
            ASSERT_TRUE(std::isnan(value)) << bits;
            ASSERT_TRUE(std::isnan(static_cast<float>(TypeParam(value)))) << bits;
            continue;
        }
        ASSERT_EQ(static_cast<double>(value), wanted) << bits;
        ASSERT_EQ(std::signbit(value), bits >> 15U != 0) << bits;
        ASSERT_EQ(TypeParam(value).bits(), bits);
        ASSERT_EQ(TypeParam(wanted).bits(), bits);
    }
}

TYPED_TEST(ShortFloat, RoundsToNearestEvenAroundEveryValue) {
    using its = format_of<TypeParam>;
    for (unsigned bits = 0; bits < its::infinity; ++bits) {
        const double low = its::value(bits);
        const double high = bits + 1 == its::infinity ? std::ldexp(1.0, its::bias + 1) : its::value(bits + 1);
        const double half = low + (high - low) / 2;  // exact: a double has more bits than both together
        for (const double one :
             {half, std::nextafter(half, 0.0), std::nextafter(half, 1e300), low + (half - low) / 3}) {
            ASSERT_EQ(TypeParam(one).bits(), its::nearest(one)) << one;
            ASSERT_EQ(TypeParam(-one).bits(), its::nearest(-one)) << one;
        }
        const auto middle = static_cast<float>(half);
        for (const float one : {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 1e38F)}) {
            ASSERT_EQ(TypeParam(one).bits(), its::nearest(static_cast<double>(one))) << one;
        }
    }
}

TYPED_TEST(ShortFloat, WhatIsTooLargeIsInfiniteAndIntegersAreRoundedOnce) {
    using its = format_of<TypeParam>;
    EXPECT_EQ(TypeParam(1e300).bits(), its::infinity);
    EXPECT_EQ(TypeParam(-std::numeric_limits<float>::infinity()).bits(), 0x8000U | its::infinity);
    EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(std::numeric_limits<double>::quiet_NaN()))));
    EXPECT_EQ(TypeParam(1e-320).bits(), 0U);
    std::mt19937_64 random(1);
    for (int i = 0; i < 20000; ++i) {
        const auto value = static_cast<std::int64_t>(random() >> random() % 64);
        const auto low = static_cast<double>(value);  // rounded once: only which side of a half it is on can be lost
        const std::uint16_t made = TypeParam(value).bits();
        if (static_cast<std::int64_t>(std::min(low, 0x1.fffffffffffffp62)) == value) {
            ASSERT_EQ(made, its::nearest(low)) << value;
        }
        ASSERT_EQ(TypeParam(-value).bits(), made == 0 ? 0U : made ^ 0x8000U) << value;
    }
    // Just above half of the way between two bfloat16 numbers: through a double, and evenly, it would go down.
    EXPECT_EQ(static_cast<float>(bfloat16((std::int64_t{0x101} << 54) + 1)), 0x1.02p62F);
    EXPECT_EQ(static_cast<float>(bfloat16(std::int64_t{0x101} << 54)), 0x1.00p62F);
}

TEST(Scalar, RefusesWhatAnElementCannotBe) {
    EXPECT_EQ(message_of<argument_error>([] { scalar(300).expect_fits(dtype::int8); }),
              "the number 300 is out of range for int8: take a wider dtype, or a number in its range");
    EXPECT_THROW(scalar(-1).expect_fits(dtype::uint64), argument_error);
    EXPECT_THROW(scalar(std::numeric_limits<std::uint64_t>::max()).expect_fits(dtype::int64), argument_error);
    EXPECT_THROW(scalar(0x1p63).expect_fits(dtype::int64), argument_error);
    EXPECT_THROW(scalar(std::nan("")).expect_fits(dtype::int32), argument_error);
    EXPECT_THROW(scalar(1, 2).expect_fits(dtype::float64), argument_error);
    EXPECT_NO_THROW(scalar(-0x1p63).expect_fits(dtype::int64));
    EXPECT_NO_THROW(scalar(255.9).expect_fits(dtype::uint8));
    EXPECT_NO_THROW(scalar(-0.9).expect_fits(dtype::uint8));
    EXPECT_NO_THROW(scalar(1e300).expect_fits(dtype::float16));
    EXPECT_NO_THROW(scalar(1, 2).expect_fits(dtype::complex64));
    EXPECT_EQ(scalar(1, 2).to_string(), "(1+2j)");
    EXPECT_EQ(scalar(true).to_string(), "true");
}

TEST(Scalar, IsStoredAndLoadedAsEachType) {
    for (const dtype type : arithmetic_dtypes()) {
        std::byte element[16];
        scalar(1).store(type, element);
        std::byte again[16];
        scalar::load(type, element).store(type, again);
        EXPECT_EQ(std::memcmp(element, again, size_of(type)), 0) << name_of(type);
    }
    std::byte element[16];
    scalar(std::numeric_limits<std::uint64_t>::max()).store(dtype::uint64, element);
    EXPECT_EQ(std::get<std::uint64_t>(scalar::load(dtype::uint64, element).value()),
              std::numeric_limits<std::uint64_t>::max());
    scalar(-7.9).store(dtype::int16, element);
    EXPECT_EQ(std::get<std::int64_t>(scalar::load(dtype::int16, element).value()), -7);
}

}  // namespace
}  // namespace weir
