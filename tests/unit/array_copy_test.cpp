// Copies between layouts and element types.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "array/visit.hpp"
#include "support/arrays.hpp"
#include "support/messages.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::make_array;
using test::message_of;
using test::values_of;
using ::testing::ElementsAre;
using testing::gate;

TEST(Copy, BetweenAnyStridesAndWithBroadcasting) {
    const stream s;
    array x = make_array<std::int32_t>(s, {2, 3}, {0, 1, 2, 3, 4, 5});
    array y = zeros({3, 2}, dtype::int32, s);
    copy(s, y, x.t());
    EXPECT_THAT(values_of<std::int32_t>(y), ElementsAre(0, 3, 1, 4, 2, 5));
    copy(s, y.t(), x[1]);
    EXPECT_THAT(values_of<std::int32_t>(y), ElementsAre(3, 3, 4, 4, 5, 5));
    copy(s, y[{ellipsis, slice{{}, {}, -1}}], x[{slice{0, 1}, slice{0, 2}}][new_axis]);
    EXPECT_THAT(values_of<std::int32_t>(y), ElementsAre(1, 0, 1, 0, 1, 0));
    EXPECT_THAT(values_of<std::int32_t>(copy(s, x[{ellipsis, slice{2, 0, -1}}])), ElementsAre(2, 1, 5, 4));
    EXPECT_EQ(
        message_of<argument_error>([&] { copy(s, y, x); }),
        "copy from the shape (2, 3) to (3, 2): the source must have the target's shape or be one that broadcasts to "
        "it; reshape or slice one of them");
    EXPECT_EQ(contiguous(s, x).data(), x.data());
    EXPECT_TRUE(contiguous(s, x.t()).is_contiguous());
}

TEST(Copy, OverlappingViewsAsThroughATemporary) {
    const stream s;
    array x = make_array<std::int32_t>(s, 6, {0, 1, 2, 3, 4, 5});
    copy(s, x, x[slice{{}, {}, -1}]);
    EXPECT_THAT(values_of<std::int32_t>(x), ElementsAre(5, 4, 3, 2, 1, 0));
    copy(s, x.slice(1, 6), x.slice(0, 5));
    EXPECT_THAT(values_of<std::int32_t>(x), ElementsAre(5, 5, 4, 3, 2, 1));
    array square = make_array<std::int32_t>(s, {2, 2}, {0, 1, 2, 3});
    copy(s, square, square.t());
    EXPECT_THAT(values_of<std::int32_t>(square), ElementsAre(0, 2, 1, 3));
    copy(s, square, square[0]);
    EXPECT_THAT(values_of<std::int32_t>(square), ElementsAre(0, 2, 0, 2));
}

TEST(Copy, IsOneOperationThatTouchesItsElementsAlone) {
    const stream s;
    const stream other;
    array x = zeros({8, 8}, dtype::int32, s);
    s.synchronize();
    gate held;
    held.hold(s);
    copy(s, x.slice(0, 4), x.slice(0, 4).t()[{ellipsis, slice{0, 1}}][slice{0, 1}]);
    fill(other, x.slice(4, 8), 7);
    other.synchronize();
    array late = copy(other, x[0]);
    EXPECT_FALSE(late.ready());
    held.open();
    EXPECT_EQ(late.read<std::int32_t>()[0], 0);
}

TEST(Copy, ConvertsWithinAKindAndUpwards) {
    const stream s;
    array x = make_array<double>(s, 3, {1.5, -2.5, 1e300});
    array y = zeros(3, dtype::float32, s);
    copy(s, y, x);
    EXPECT_THAT(values_of<float>(y), ElementsAre(1.5F, -2.5F, std::numeric_limits<float>::infinity()));
    copy(s, zeros(3, dtype::complex64, s), zeros(3, dtype::uint8, s));
    EXPECT_EQ(
        message_of<argument_type_error>([&] { copy(s, zeros(3, dtype::int64, s), x); }),
        "copy from float64 to int64 would lose what kind of numbers they are: convert with astype(on, x, dtype) if "
        "that is meant");
    EXPECT_THROW(copy(s, zeros(3, dtype::uint64, s), zeros(3, dtype::int8, s)), argument_type_error);
    EXPECT_THROW(copy(s, zeros(3, dtype::bool_, s), zeros(3, dtype::uint8, s)), argument_type_error);
}

TEST(Copy, FromTheHostIntoAnyStrides) {
    const stream s;
    array x = zeros({2, 3}, dtype::int32, s);
    const std::int32_t packed[] = {1, 2, 3, 4, 5, 6};
    copy_from_host(s, x.t(), std::as_bytes(std::span(packed)));
    EXPECT_THAT(values_of<std::int32_t>(x), ElementsAre(1, 3, 5, 2, 4, 6));
    EXPECT_THROW(copy_from_host(s, x, std::as_bytes(std::span(packed).first(3))), argument_error);
}

TEST(Copy, LargeTransposesAndEveryElementSize) {
    const stream s;
    for (const dtype type : arithmetic_dtypes()) {
        const std::int64_t rows = 67;
        const std::int64_t columns = 131;
        array x = empty({rows, columns}, type, s);
        std::vector<std::byte> bytes(x.nbytes());
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            bytes[i] = static_cast<std::byte>(i * 2654435761U >> 7U & 1U);
        }
        copy_from_host(s, x, bytes);
        array turned = copy(s, x.t());
        const std::size_t item = size_of(type);
        detail::visit(type, [&]<class T>(std::type_identity<T>) {
            const auto seen = turned.read<T>();
            for (std::int64_t i = 0; i < columns; ++i) {
                for (std::int64_t j = 0; j < rows; ++j) {
                    ASSERT_EQ(std::memcmp(&seen[static_cast<std::size_t>(i * rows + j)],
                                          &bytes[static_cast<std::size_t>(j * columns + i) * item], item),
                              0)
                        << name_of(type);
                }
            }
        });
    }
}

/// The value of an element in another type, by the definition of the conversion; `numeric` holds values that all types have.
template <class To>
To expected(double value) {
    if constexpr (std::is_same_v<To, bool>) {
        return value != 0;
    } else if constexpr (std::is_integral_v<To>) {
        // modulo 2 to the power of the bits, by remainders
        const long double bits = std::ldexp(1.0L, 8 * static_cast<int>(sizeof(To)));
        long double wrapped = std::fmod(static_cast<long double>(std::trunc(value)), bits);
        wrapped += wrapped < 0 ? bits : 0.0L;
        return static_cast<To>(static_cast<std::uint64_t>(wrapped));
    } else if constexpr (requires { typename To::value_type; }) {
        return To(static_cast<typename To::value_type>(static_cast<float>(value)));
    } else {
        return To(static_cast<float>(value));
    }
}

TEST(Astype, ConvertsBetweenAllTypesAsNumPyDoes) {
    const stream s;
    const std::vector<double> values = {0, 1, 2, 3, 100, 127, -1, -2, -128, 2.5, -2.5, 0.25};
    for (const dtype from : arithmetic_dtypes()) {
        array source = empty(static_cast<std::int64_t>(values.size()), from, s);
        std::vector<std::byte> bytes(source.nbytes());
        std::vector<double> held;  // the values that elements of this type can be
        for (std::size_t i = 0; i < values.size(); ++i) {
            const bool fits =
                kind_of(from) >= dtype_kind::real || (values[i] == std::trunc(values[i]) &&
                                                      (kind_of(from) == dtype_kind::signed_integer || values[i] >= 0) &&
                                                      (from != dtype::bool_ || values[i] <= 1));
            held.push_back(fits ? values[i] : 1);
            scalar(held.back()).store(from, bytes.data() + i * size_of(from));
        }
        copy_from_host(s, source, bytes);
        for (const dtype to : arithmetic_dtypes()) {
            array made = astype(s, source[slice{{}, {}, -1}], to);
            EXPECT_EQ(made.dtype(), to);
            detail::visit(to, [&]<class T>(std::type_identity<T>) {
                const auto seen = made.read<T>();
                for (std::size_t i = 0; i < held.size(); ++i) {
                    ASSERT_EQ(seen[i], expected<T>(held[held.size() - 1 - i]))
                        << name_of(from) << " to " << name_of(to);
                }
            });
        }
    }
}

TEST(Astype, TheEdgesOfTheNumbers) {
    const stream s;
    const double infinity = std::numeric_limits<double>::infinity();
    array x = make_array<double>(s, 6, {infinity, -infinity, std::nan(""), 3e9, -3e9, 1e19});
    EXPECT_THAT(
        values_of<std::int32_t>(astype(s, x, dtype::int32)),
        ElementsAre(0, 0, 0, static_cast<std::int32_t>(3000000000U), -static_cast<std::int32_t>(3000000000U), 0));
    EXPECT_EQ(values_of<std::uint64_t>(astype(s, x, dtype::uint64))[5], 10000000000000000000U);
    EXPECT_EQ(values_of<std::int64_t>(astype(s, x, dtype::int64))[2], std::numeric_limits<std::int64_t>::min());
    EXPECT_THAT(values_of<bool>(astype(s, x, dtype::bool_)), ElementsAre(true, true, true, true, true, true));
    array c = make_array<std::complex<double>>(s, 2, {{0, 2}, {-3, 1}});
    EXPECT_THAT(values_of<bool>(astype(s, c, dtype::bool_)), ElementsAre(true, true));
    EXPECT_THAT(values_of<std::int8_t>(astype(s, c, dtype::int8)), ElementsAre(0, -3));
    array large = make_array<std::uint64_t>(s, 1, {std::numeric_limits<std::uint64_t>::max()});
    EXPECT_EQ(values_of<double>(astype(s, large, dtype::float64))[0], 0x1p64);
}

TEST(Creation, FillsEveryTypeAndAnyStrides) {
    const stream s;
    for (const dtype type : arithmetic_dtypes()) {
        array x = zeros({5, 7}, type, s);
        fill(s, x[{slice{1, {}, 2}, slice{{}, {}, -3}}], 1);
        detail::visit(type, [&]<class T>(std::type_identity<T>) {
            const auto seen = x.read<T>();
            for (std::size_t i = 0; i < 5; ++i) {
                for (std::size_t j = 0; j < 7; ++j) {
                    ASSERT_EQ(seen[i * 7 + j], T(i % 2 == 1 && j % 3 == 0 ? 1 : 0)) << name_of(type);
                }
            }
        });
    }
    EXPECT_EQ(full(1, std::numeric_limits<std::uint64_t>::max(), dtype::uint64, s).read<std::uint64_t>()[0],
              std::numeric_limits<std::uint64_t>::max());
    EXPECT_THROW((void)full(1, -1, dtype::uint8, s), argument_error);
}

}  // namespace
}  // namespace weir
