// Element types without arithmetic: float8 and its relatives, integers of 2 and 4 bits, opaque types, vector types. They can be
// described, made, viewed and copied; everything else throws.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "support/messages.hpp"
#include "weir/detail/host_copy.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::message_of;

constexpr dtype opaque24(dtype_code::opaque, 24);
constexpr dtype float32x4(dtype_code::ieee_float, 32, 4);

std::vector<std::byte> counted_bytes(std::size_t count) {
    std::vector<std::byte> made(count);
    for (std::size_t i = 0; i < count; ++i) {
        made[i] = static_cast<std::byte>(i * 37 + 11);
    }
    return made;
}

array filled(const shape& extents, dtype type, const stream& s) {
    array made = empty(extents, type, s);
    copy_from_host(s, made, counted_bytes(made.nbytes()));
    return made;
}

std::vector<std::byte> bytes_of(const array& x) {
    std::vector<std::byte> made(x.nbytes());
    detail::copy_to_host(x, made.data(), source_location::current());
    return made;
}

template <class T>
concept is_ordered = requires(T a, T b) {
    a < b;
};
static_assert(!is_ordered<dtype>);

constexpr int switched(dtype type) {
    switch (type.key()) {
        case dtype::float8_e5m2.key():
            return 1;
        case dtype::float32.key():
            return 2;
        default:
            return 0;
    }
}
static_assert(switched(dtype::float8_e5m2) == 1 && switched(dtype::float32) == 2 && switched(float32x4) == 0);

TEST(CarriedDtype, TheTableOfDLPackIsMappedBothWays) {
    struct row {
        dtype type;
        std::uint8_t code;
        std::uint8_t bits;
        std::uint16_t lanes = 1;
    };
    // dlpack.h, version 1.3
    const row rows[] = {{dtype::int8, 0, 8},
                        {dtype::int16, 0, 16},
                        {dtype::int32, 0, 32},
                        {dtype::int64, 0, 64},
                        {dtype::int2, 0, 2},
                        {dtype::int4, 0, 4},
                        {dtype::uint8, 1, 8},
                        {dtype::uint16, 1, 16},
                        {dtype::uint32, 1, 32},
                        {dtype::uint64, 1, 64},
                        {dtype::uint2, 1, 2},
                        {dtype::uint4, 1, 4},
                        {dtype::float16, 2, 16},
                        {dtype::float32, 2, 32},
                        {dtype::float64, 2, 64},
                        {float32x4, 2, 32, 4},
                        {opaque24, 3, 24},
                        {dtype::bfloat16, 4, 16},
                        {dtype::complex64, 5, 64},
                        {dtype::complex128, 5, 128},
                        {dtype::bool_, 6, 8},
                        {dtype::float8_e3m4, 7, 8},
                        {dtype::float8_e4m3, 8, 8},
                        {dtype::float8_e4m3b11fnuz, 9, 8},
                        {dtype::float8_e4m3fn, 10, 8},
                        {dtype::float8_e4m3fnuz, 11, 8},
                        {dtype::float8_e5m2, 12, 8},
                        {dtype::float8_e5m2fnuz, 13, 8},
                        {dtype::float8_e8m0fnu, 14, 8},
                        {dtype::float6_e2m3fn, 15, 6},
                        {dtype::float6_e3m2fn, 16, 6},
                        {dtype::float4_e2m1fn, 17, 4}};
    std::unordered_set<dtype> seen;
    for (const row& one : rows) {
        const dlpack_dtype theirs{one.code, one.bits, one.lanes};
        EXPECT_EQ(to_dlpack_dtype(one.type), theirs) << name_of(one.type);
        EXPECT_EQ(from_dlpack_dtype(theirs), one.type) << name_of(one.type);
        seen.insert(one.type);
    }
    EXPECT_EQ(seen.size(), std::size(rows)) << "each is a type of its own";
    for (const dtype type : all_dtypes()) {
        EXPECT_TRUE(seen.contains(type)) << name_of(type);
    }
}

TEST(CarriedDtype, WhatDLPackDoesNotHaveIsRefused) {
    for (const dlpack_dtype wrong :
         {dlpack_dtype{18, 8, 1}, {255, 8, 1}, {2, 0, 1}, {2, 32, 0}, {10, 16, 1}, {15, 8, 1}, {17, 8, 1}}) {
        EXPECT_THROW((void)from_dlpack_dtype(wrong), argument_type_error) << int{wrong.code} << " " << int{wrong.bits};
    }
}

TEST(CarriedDtype, NamesOfVectorAndOpaqueTypesAreFoundAgain) {
    EXPECT_EQ(name_of(opaque24), "opaque24");
    EXPECT_EQ(name_of(float32x4), "float32x4");
    EXPECT_EQ(name_of(dtype(dtype_code::opaque, 8, 100)), "opaque8x100");
    for (const dtype type :
         {opaque24, float32x4, dtype(dtype_code::opaque, 8, 100), dtype(dtype_code::float8_e5m2, 8, 2)}) {
        EXPECT_EQ(dtype_from_name(name_of(type)), type) << name_of(type);
    }
    for (const char* const wrong :
         {"opaque", "opaque0", "opaque256", "float32x", "float32x0", "float32x70000", "x4", "x"}) {
        EXPECT_THROW((void)dtype_from_name(wrong), argument_type_error) << wrong;
    }
}

TEST(CarriedDtype, SizesAreComputedFromBits) {
    EXPECT_EQ(bytes_for(dtype::int4, 0), 0U);
    EXPECT_EQ(bytes_for(dtype::int4, 3), 2U);
    EXPECT_EQ(bytes_for(dtype::uint2, 5), 2U);
    EXPECT_EQ(bytes_for(dtype::float6_e2m3fn, 4), 3U);
    EXPECT_EQ(bytes_for(dtype::float6_e2m3fn, 9), 7U);
    EXPECT_EQ(bytes_for(opaque24, 5), 15U);
    EXPECT_EQ(size_of(dtype::float8_e4m3), 1U);
    EXPECT_EQ(size_of(float32x4), 16U);
    EXPECT_EQ(bits_of(float32x4), 128U);
    EXPECT_EQ(alignment_of(float32x4), 4U);
    EXPECT_EQ(alignment_of(dtype(dtype_code::opaque, 64)), 1U);
    EXPECT_EQ(message_of<argument_type_error>([] { (void)size_of(dtype::int4); }),
              "an element of int4 has 4 bits, which are no whole bytes: take bits_of(type), or bytes_for(type, count)");
    EXPECT_THROW((void)empty(3, dtype(dtype_code::ieee_float, 0)), argument_type_error);
    EXPECT_THROW((void)empty(3, dtype(dtype_code::ieee_float, 8, 0)), argument_type_error);
}

TEST(CarriedArray, WholeBytesAreSlicedTransposedAndCopiedInAnyOrder) {
    const stream s;
    for (const dtype type : {dtype::float8_e4m3fn, opaque24, float32x4, dtype(dtype_code::opaque, 64)}) {
        array x = filled({4, 6}, type, s);
        const std::vector<std::byte> all = bytes_of(x);
        EXPECT_EQ(all, counted_bytes(24 * size_of(type)));
        array part = x[{slice{3, {}, -2}, slice{1, {}, 2}}].t();  // 3 x 2
        ASSERT_EQ(part.shape(), shape({3, 2}));
        const std::vector<std::byte> packed = bytes_of(copy(s, part));
        EXPECT_EQ(packed, bytes_of(part)) << name_of(type);
        array target = filled({3, 4}, type, s);
        copy(s, target[{ellipsis, slice{{}, {}, 2}}], part);
        for (std::size_t i = 0; i < 3; ++i) {
            for (std::size_t j = 0; j < 2; ++j) {
                const std::size_t from = ((3 - 2 * j) * 6 + 1 + 2 * i) * size_of(type);
                const std::vector<std::byte> element(all.data() + from, all.data() + from + size_of(type));
                const std::size_t place = (i * 2 + j) * size_of(type);
                EXPECT_EQ(std::memcmp(packed.data() + place, element.data(), element.size()), 0) << name_of(type);
                const std::vector<std::byte> copied =
                    bytes_of(target[{static_cast<std::int64_t>(i), static_cast<std::int64_t>(2 * j)}]);
                EXPECT_EQ(copied, element) << name_of(type);
            }
        }
    }
}

TEST(CarriedArray, ARowIsBroadcastAndOverlappingPartsAreCopied) {
    const stream s;
    array x = filled(8, dtype::float8_e5m2, s);
    const std::vector<std::byte> before = bytes_of(x);
    copy(s, x.slice(1, 8), x.slice(0, 7));
    const std::vector<std::byte> after = bytes_of(x);
    EXPECT_TRUE(std::equal(before.begin(), before.end() - 1, after.begin() + 1));
    array rows = empty({3, 8}, dtype::float8_e5m2, s);
    copy(s, rows, x);
    EXPECT_EQ(bytes_of(rows[2]), after);
}

TEST(CarriedArray, PartsOfPackedElementsBeginAndEndWithAByte) {
    const stream s;
    array x = filled({3, 4}, dtype::int4, s);
    EXPECT_EQ(x.nbytes(), 6U);
    const std::vector<std::byte> all = bytes_of(x);
    EXPECT_EQ(bytes_of(x[1]), (std::vector<std::byte>{all[2], all[3]}));
    EXPECT_EQ((bytes_of(x[{2, slice{2, 4}}])), (std::vector<std::byte>{all[5]}));
    EXPECT_EQ(bytes_of(x.reshape({12})), all);
    EXPECT_EQ((x[{new_axis, 1}].shape()), shape({1, 4}));
    EXPECT_EQ(x.slice(1, 1).size(), 0);
    const auto odd_part = [&] { (void)x[{1, slice{0, 1}}]; };
    EXPECT_EQ(
        message_of<argument_error>(odd_part),
        "a part of " + x.to_string() +
            " with the shape (1,): an element has 4 bits, so a part must lie in C order and begin and end with a byte");
    EXPECT_THROW((void)(x[{0, slice{1, 3}}]), argument_error) << "begins within a byte";
    EXPECT_THROW((void)x.t(), argument_error);
    EXPECT_THROW((void)(x[{ellipsis, slice{{}, {}, 2}}]), argument_error);
    EXPECT_THROW((void)x[0].broadcast_to({3, 4}), argument_error);
    array odd = filled(5, dtype::int4, s);
    EXPECT_EQ(odd.nbytes(), 3U);
    EXPECT_EQ(odd.slice(2, 5).nbytes(), 2U) << "the part that ends with the array";
}

TEST(CarriedArray, PackedElementsAreCopied) {
    const stream s;
    for (const dtype type : {dtype::int4, dtype::uint2, dtype::float6_e3m2fn, dtype::float4_e2m1fn}) {
        array x = filled({2, 4, 5}, type, s);
        array y = copy(s, x);
        EXPECT_EQ(y.dtype(), type);
        EXPECT_EQ(bytes_of(y), counted_bytes(bytes_for(type, 40))) << name_of(type);
        array z = empty({2, 4, 5}, type, s);
        copy(s, z[1], x[0]);
        EXPECT_EQ(bytes_of(z[1]), bytes_of(x[0])) << name_of(type);
    }
}

TEST(CarriedArray, StridesOfPackedElementsAreBitsAndInCOrderOnly) {
    const stream s;
    array x = filled({3, 4}, dtype::int4, s);
    EXPECT_THAT(x.strides(), ::testing::ElementsAre(16, 4));
    const std::int64_t in_order[] = {16, 4};
    array again(x.buffer(), dtype::int4, {3, 4}, in_order, 0);
    EXPECT_EQ(bytes_of(again), bytes_of(x));
    const std::int64_t others[] = {4, 12};
    EXPECT_THROW(array(x.buffer(), dtype::int4, {3, 4}, others, 0), argument_error);
    EXPECT_THROW(array(buffer(5, s), dtype::int4, {3, 4}, in_order, 0), argument_error) << "6 bytes are needed";
}

TEST(CarriedArray, ArithmeticConversionsAndNumbersAreRefused) {
    const stream s;
    array x = filled(4, dtype::float8_e4m3fn, s);
    array packed = filled(4, dtype::int4, s);
    array number = ones(4, dtype::float32, s);
    const auto refused = [](const std::function<void()>& call) {
        const std::string message = message_of<argument_type_error>(call);
        EXPECT_THAT(message, ::testing::HasSubstr("types with arithmetic are bool, int8, int16"));
    };
    for (array one : {x, packed}) {
        refused([&] { (void)(one + one); });
        refused([&] { (void)(one + 1); });
        refused([&] { (void)(number == one); });
        refused([&] { (void)-one; });
        refused([&] { (void)sum(s, one); });
        refused([&] { (void)max(s, one); });
        refused([&] { (void)select(s, one, number, number); });
        refused([&] { (void)select(s, number, one, number); });
        refused([&] { compute(s, binary_operation::add, number, number, one); });
        refused([&] { (void)astype(s, one, dtype::float32); });
        refused([&] { (void)astype(s, number, one.dtype()); });
        refused([&] { copy(s, one, number); });
        refused([&] { copy(s, number, one); });
        refused([&] { (void)to(s, one, cpu(), dtype::float32); });
        refused([&] { fill(s, one, 1); });
        refused([&] { (void)zeros(4, one.dtype(), s); });
        refused([&] { (void)arange(0, 4, 1, one.dtype(), s); });
        refused([&] { (void)promote_types(one.dtype(), dtype::float32); });
        refused([&] {
            std::byte element[16] = {};
            (void)scalar::load(one.dtype(), element);
        });
        EXPECT_THROW((void)random(4, 1, one.dtype(), s), argument_type_error);
        EXPECT_THROW((void)fft::fft(s, one), argument_type_error);
        EXPECT_THROW((void)one.view<std::uint8_t>(), argument_type_error);
    }
    EXPECT_THAT(x.to_string(), ::testing::HasSubstr("float8_e4m3fn")) << "the array itself is described";
}

}  // namespace
}  // namespace weir
