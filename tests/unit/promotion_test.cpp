// The element type of the result of arithmetic: NumPy's table for two arrays, NEP 50 for an array and a number.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "support/messages.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::message_of;

TEST(Promotion, IsNumPysForAllPairs) {
    std::ifstream table(WEIR_TEST_DATA "/promotion.txt");
    std::string a;
    std::string b;
    std::string wanted;
    std::size_t lines = 0;
    while (table >> a >> b >> wanted) {
        ++lines;
        if (wanted == "-") {
            EXPECT_THROW((void)promote_types(dtype_from_name(a), dtype_from_name(b)), argument_type_error) << a << b;
        } else {
            EXPECT_EQ(name_of(promote_types(dtype_from_name(a), dtype_from_name(b))), wanted) << a << " and " << b;
        }
    }
    EXPECT_EQ(lines, arithmetic_dtypes().size() * arithmetic_dtypes().size());
}

dtype with(dtype type, const scalar& number) { return (ones(1, type) + number).dtype(); }

TEST(Promotion, NumbersTakeTheArraysType) {
    for (const dtype type : arithmetic_dtypes()) {
        const bool boolean = type == dtype::bool_;
        EXPECT_EQ(with(type, true), type);
        EXPECT_EQ(with(type, 1), boolean ? dtype::int64 : type);
        EXPECT_EQ(with(type, 1.0), kind_of(type) < dtype_kind::real ? dtype::float64 : type);
        const bool narrow = (is_real(type) && size_of(type) < 8) || type == dtype::complex64;
        EXPECT_EQ(with(type, scalar(0, 1)), narrow ? dtype::complex64 : dtype::complex128) << name_of(type);
    }
}

TEST(Promotion, ANumberOutOfRangeIsAnErrorButCanBeCompared) {
    array x = ones(1, dtype::uint8);
    EXPECT_EQ(message_of<argument_error>([&] { (void)(x + 300); }),
              "the number 300 is out of range for uint8: take a wider dtype, or a number in its range");
    EXPECT_THROW((void)(x * -1), argument_error);
    EXPECT_TRUE((x < 300).read<bool>()[0]);
    EXPECT_TRUE((x > -1).read<bool>()[0]);
    EXPECT_FALSE((x == 257).read<bool>()[0]);
    EXPECT_TRUE((full(1, UINT64_MAX, dtype::uint64) > -1).read<bool>()[0]);
    EXPECT_TRUE((full(1, -1, dtype::int8) < UINT64_MAX).read<bool>()[0]);
}

TEST(Promotion, IntegersOfBothKindsAreComparedExactly) {
    array large = full(1, std::uint64_t{1} << 63U, dtype::uint64);
    array least = full(1, INT64_MIN, dtype::int64);
    array most = full(1, INT64_MAX, dtype::int64);
    EXPECT_TRUE((least < large).read<bool>()[0]);
    EXPECT_TRUE((large > most).read<bool>()[0]) << "as float64 they would be equal";
    EXPECT_TRUE((most != large).read<bool>()[0]);
    EXPECT_FALSE((large <= most).read<bool>()[0]);
    EXPECT_TRUE((large >= ones(1, dtype::int8)).read<bool>()[0]);
}

TEST(Promotion, WhatATypeCannotIsSaid) {
    array flags = ones(1, dtype::bool_);
    array x = ones(1, dtype::float32);
    EXPECT_EQ(message_of<argument_type_error>([&] { (void)(flags - flags); }),
              "subtract is not for elements of bool: convert them with astype(on, x, dtype)");
    EXPECT_THROW((void)-flags, argument_type_error);
    EXPECT_THROW((void)(x & x), argument_type_error);
    EXPECT_THROW((void)~x, argument_type_error);
    EXPECT_EQ(message_of<argument_type_error>([&] { (void)(ones(1, dtype::bfloat16) + ones(1, dtype::float16)); }),
              "bfloat16 and float16 have no common type: convert one of them with astype(on, x, dtype)");
    EXPECT_EQ(message_of<argument_type_error>([&] { ones(2, dtype::int32) += 1.5; }),
              "add: the results are float64, the array for them holds int32: compute into a new array, or convert with "
              "astype(on, x, dtype)");
    EXPECT_THROW(ones(2, dtype::uint8) += ones(2, dtype::int8), argument_type_error);
    EXPECT_THROW(ones(2, dtype::int32) /= 2, argument_type_error);
    EXPECT_NO_THROW(ones(2, dtype::float32) += ones(2, dtype::float64));
}

}  // namespace
}  // namespace weir
