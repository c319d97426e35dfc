// Slices, transposes, reshapes: other views of the same memory, with NumPy's meaning.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "support/arrays.hpp"
#include "support/messages.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::message_of;
using test::values_of;
using ::testing::ElementsAre;

/// 0, 1, 2, ...
array counting(const shape& extents) {
    array made = empty(extents, dtype::int32);
    const auto host = made.write<std::int32_t>();
    std::iota(host.begin(), host.end(), 0);
    return made;
}

std::vector<std::int32_t> numbers(const array& x) { return values_of<std::int32_t>(x); }

TEST(Views, SlicesHaveNumPysMeaning) {
    array x = counting(10);
    EXPECT_THAT(numbers(x[slice{2, 5}]), ElementsAre(2, 3, 4));
    EXPECT_THAT(numbers(x[slice{-3, {}}]), ElementsAre(7, 8, 9));
    EXPECT_THAT(numbers(x[slice{{}, {}, -3}]), ElementsAre(9, 6, 3, 0));
    EXPECT_THAT(numbers(x[slice{8, 100}]), ElementsAre(8, 9));
    EXPECT_THAT(numbers(x[slice{100, -100, -4}]), ElementsAre(9, 5, 1));
    EXPECT_THAT(numbers(x[slice{{}, {}, INT64_MIN}]), ElementsAre(9));
    EXPECT_THAT(numbers(x[slice{{}, {}, INT64_MAX}]), ElementsAre(0));
    EXPECT_EQ(x[(slice{5, 2})].size(), 0);
    EXPECT_THROW((void)x[(slice{{}, {}, 0})], argument_error);
}

TEST(Views, IntegersDropDimensionsAndOthersAreKept) {
    array x = counting({2, 3, 4});
    EXPECT_EQ(x[1].shape(), shape({3, 4}));
    EXPECT_THAT(numbers(x[{1, -1}]), ElementsAre(20, 21, 22, 23));
    EXPECT_THAT(numbers(x[{ellipsis, 2}]), ElementsAre(2, 6, 10, 14, 18, 22));
    EXPECT_EQ((x[{0, ellipsis, new_axis, slice{1, 3}}].shape()), shape({3, 1, 2}));
    EXPECT_EQ((x[{1, 2, 3}].dimensions()), 0U);
    EXPECT_THAT(numbers(x[{1, 2, 3}]), ElementsAre(23));
    EXPECT_EQ(message_of<argument_error>([&] {
                  (void)x[{0, 3}];
              }),
              "index 3 of dimension 1 of an array of the shape (2, 3, 4): out of range");
    EXPECT_THROW((void)x[-3], argument_error);
    EXPECT_THROW((void)(x[{0, 0, 0, 0}]), argument_error);
    EXPECT_THROW((void)(x[{ellipsis, ellipsis}]), argument_error);
    EXPECT_THROW((void)empty({0, 3})[0], argument_error);
}

TEST(Views, TransposesReorderAxes) {
    array x = counting({2, 3, 4});
    EXPECT_EQ(x.t().shape(), shape({4, 3, 2}));
    EXPECT_EQ(x.transpose({-1, 0, 1}).shape(), shape({4, 2, 3}));
    EXPECT_THAT(numbers(counting({2, 3}).t()), ElementsAre(0, 3, 1, 4, 2, 5));
    EXPECT_EQ(message_of<argument_error>([&] {
                  (void)x.transpose({0, 1, 3});
              }),
              "axis 3 of an array of the shape (2, 3, 4): there are 3 axes, from -3 to 2");
    EXPECT_THROW((void)x.transpose({0, 1, 1}), argument_error);
    EXPECT_THROW((void)x.transpose({0, 1}), argument_error);
    EXPECT_EQ(empty(shape()).t().dimensions(), 0U);
}

TEST(Views, ReshapeIsAViewWhereStridesCanSayIt) {
    array x = counting({4, 6});
    array columns = x[{ellipsis, slice{{}, {}, 2}}];
    EXPECT_EQ(columns.reshape({2, 2, 3}).shape(), shape({2, 2, 3}));
    EXPECT_THAT(numbers(columns.reshape({2, 2, 3})[{1, 0}]), ElementsAre(12, 14, 16));
    EXPECT_EQ(columns.reshape({2, -1}).shape(), shape({2, 6}));
    EXPECT_EQ(columns.reshape({2, 2, 1, 3, 1}).data(), x.data());
    EXPECT_THAT(numbers(columns.reshape({12})), ElementsAre(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22));
    EXPECT_EQ(message_of<argument_error>([&] { (void)x.t().reshape({24}); }),
              "<weir.array int32 (6, 4) on cpu> cannot become (24,) without a copy, since its elements do not lie in C "
              "order: reshape(on, x, shape) copies");
    const stream s;
    EXPECT_THAT(numbers(reshape(s, x.t(), 24)[slice{0, 5}]), ElementsAre(0, 6, 12, 18, 1));
    EXPECT_EQ(reshape(s, columns, 12).data(), x.data());
    EXPECT_THROW((void)x.reshape({5, -1}), argument_error);
    EXPECT_THROW((void)x.reshape({-1, -1}), argument_error);
    EXPECT_THROW((void)empty({0, 3}).reshape({0, -1}), argument_error);
    EXPECT_EQ(empty({0, 3}).t().reshape({5, 0}).shape(), shape({5, 0}));
}

TEST(Views, BroadcastArraysAreForReading) {
    const stream s;
    array x = counting({3, 1});
    array wide = x.broadcast_to({2, 3, 4});
    EXPECT_THAT(wide.strides(), ElementsAre(0, 4, 0));
    EXPECT_THAT(numbers(wide[0]), ElementsAre(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2));
    EXPECT_EQ(wide.footprint(detail::key), x.footprint(detail::key));
    EXPECT_FALSE(wide.has_own_elements());
    EXPECT_EQ(message_of<argument_error>([&] { fill(s, wide, 1); }),
              "<weir.array int32 (2, 3, 4) on cpu> is to be written, but elements of it share memory, as after "
              "broadcast_to: write the array that it was made from, or a copy");
    EXPECT_THROW(copy(s, wide, x), argument_error);
    EXPECT_THROW((void)(out(wide.strided<std::int32_t, 3>())), argument_error);
    EXPECT_NO_THROW((void)(in(wide.strided<std::int32_t, 3>())));
    EXPECT_THROW((void)x.broadcast_to({2, 4}), argument_error);
    EXPECT_THROW((void)x.broadcast_to(3), argument_error);
    EXPECT_EQ(broadcast_shapes({3, 1}, {2, 1, 4}), shape({2, 3, 4}));
    EXPECT_EQ(broadcast_shapes({}, {0, 1}), shape({0, 1}));
    EXPECT_EQ(
        message_of<argument_error>([] {
            (void)broadcast_shapes({2, 3}, 2);
        }),
        "the shapes (2, 3) and (2,) do not fit together: counted from the last dimension, extents must be equal or "
        "1");
}

TEST(Views, ContiguityIsThatOfCOrder) {
    array x = counting({4, 6});
    EXPECT_TRUE(x.is_contiguous());
    EXPECT_TRUE(x.slice(1, 3).is_contiguous());
    EXPECT_FALSE(x.t().is_contiguous());
    EXPECT_EQ(x.t().footprint(detail::key), x.footprint(detail::key)) << "the same bytes";
    EXPECT_FALSE((x[{ellipsis, slice{0, 3}}].is_contiguous()));
    EXPECT_TRUE((x[{slice{1, 2}, slice{0, 3}}].is_contiguous())) << "the stride of one row does not matter";
    EXPECT_TRUE((x[{slice{0, 0}, slice{{}, {}, 2}}].is_contiguous())) << "nothing is in order";
    EXPECT_TRUE(x.t().t().is_contiguous());
}

TEST(Views, ThirtyTwoDimensions) {
    const std::vector<std::int64_t> twos(20, 2);
    std::vector<std::int64_t> extents(32, 1);
    std::copy(twos.begin(), twos.end(), extents.begin() + 6);
    array x = counting(shape(std::span<const std::int64_t>(extents)));
    array turned = x.t();
    EXPECT_EQ(turned.dimensions(), 32U);
    const std::vector<std::int32_t> seen = numbers(turned);
    for (std::size_t i = 0; i < seen.size(); ++i) {
        std::uint32_t reversed = 0;
        for (unsigned bit = 0; bit < 20; ++bit) {
            reversed |= (static_cast<std::uint32_t>(i) >> bit & 1U) << (19 - bit);
        }
        ASSERT_EQ(static_cast<std::uint32_t>(seen[i]), reversed);
    }
    EXPECT_THROW((void)x[new_axis], argument_error);
}

TEST(Views, StridesOfTheProgramsOwn) {
    const buffer memory(96);
    const auto over = [&](const shape& extents, std::vector<std::int64_t> strides, std::size_t offset) {
        return array(memory, dtype::float64, extents, strides, offset);
    };
    EXPECT_EQ(over({3, 2}, {-32, 8}, 64).footprint(detail::key).begin, 0U);
    EXPECT_EQ(over({3, 2}, {-32, 8}, 64).footprint(detail::key).end, 80U);
    EXPECT_NO_THROW(over({2, 1}, {8, 3}, 80)) << "the stride of one row does not matter";
    EXPECT_NO_THROW(over({0, 9}, {5, 1 << 20}, 96));
    EXPECT_FALSE(over({3, 3}, {8, 8}, 0).has_own_elements()) << "windows that slide over each other";
    EXPECT_THROW(over({3, 2}, {-32, 8}, 56), argument_error);
    EXPECT_THROW(over({3, 2}, {32, 8}, 24), argument_error);
    EXPECT_THROW(over({INT64_C(1) << 50, 2}, {INT64_C(1) << 40, 8}, 0), argument_error);
    EXPECT_THROW(over({2}, {8, 8}, 0), argument_error);
    EXPECT_THROW(over({2}, {8}, 4), argument_error);
    EXPECT_EQ(message_of<argument_error>([&] { over(2, {12}, 0); }),
              "an array of float64 with the shape (2,) with a stride of 12 bytes: strides must be multiples of the "
              "element's size, 8");
}

}  // namespace
}  // namespace weir
