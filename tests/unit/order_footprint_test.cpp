#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "order/box.hpp"
#include "weir/detail/footprint.hpp"

namespace weir::order {
namespace {

/// A strided array as the test describes it, and the bytes that it touches, one by one: shares no code with the engine.
struct strided_array {
    std::uint64_t offset = 0;
    std::vector<level> levels;
    std::uint64_t run = 1;

    [[nodiscard]] footprint where() const { return strided(offset, levels, run); }
    [[nodiscard]] std::set<std::int64_t> bytes() const {
        std::set<std::int64_t> starts{static_cast<std::int64_t>(offset)};
        for (const level& one : levels) {
            std::set<std::int64_t> next;
            for (const std::int64_t start : starts) {
                for (std::int64_t i = 0; i < one.count; ++i) {
                    next.insert(start + i * one.stride);
                }
            }
            starts = next;
        }
        std::set<std::int64_t> all;
        for (const std::int64_t start : starts) {
            for (std::int64_t i = 0; i < static_cast<std::int64_t>(run); ++i) {
                all.insert(start + i);
            }
        }
        return all;
    }
};

bool share(const std::set<std::int64_t>& a, const std::set<std::int64_t>& b) {
    return std::any_of(a.begin(), a.end(), [&](std::int64_t byte) { return b.count(byte) != 0; });
}

/// The part [row0, row1) x [column0, column1) of a matrix with `columns` columns of `item` bytes.
footprint tile(std::int64_t columns, std::int64_t item, std::int64_t row0, std::int64_t row1, std::int64_t column0,
               std::int64_t column1) {
    const level levels[] = {{columns * item, row1 - row0}, {item, column1 - column0}};
    return strided(static_cast<std::uint64_t>((row0 * columns + column0) * item), levels,
                   static_cast<std::uint64_t>(item));
}

TEST(O3, WhatIsOneRunOfBytesIsARange) {
    EXPECT_EQ(tile(8, 4, 2, 5, 0, 8), (footprint{64, 160}));
    EXPECT_EQ(tile(8, 4, 2, 3, 1, 4), (footprint{68, 80}));
    EXPECT_TRUE(tile(8, 4, 2, 2, 0, 8).empty());
    const level reversed[] = {{-4, 10}};
    EXPECT_EQ(strided(36, reversed, 4), (footprint{0, 40}));
}

TEST(O3, ColumnsOfOneMatrixAreApart) {
    // 100,000 rows: far too many to check one by one.
    const footprint left = tile(1000, 8, 0, 100000, 0, 500);
    const footprint right = tile(1000, 8, 0, 100000, 500, 1000);
    const footprint across = tile(1000, 8, 0, 100000, 499, 501);
    EXPECT_EQ(compare(left, right), overlap_kind::none);
    EXPECT_EQ(compare(left, across), overlap_kind::certain);
    EXPECT_EQ(compare(right, across), overlap_kind::certain);
    EXPECT_FALSE(overlap(tile(1000, 8, 0, 100000, 7, 8), tile(1000, 8, 0, 100000, 8, 9)));
}

TEST(O3, TilesAndRowsOfOneMatrixCompareExactly) {
    const footprint middle = tile(1000, 8, 10, 20, 100, 200);
    EXPECT_FALSE(overlap(middle, tile(1000, 8, 20, 30, 100, 200)));
    EXPECT_FALSE(overlap(middle, tile(1000, 8, 10, 20, 200, 300)));
    EXPECT_TRUE(overlap(middle, tile(1000, 8, 19, 30, 199, 300)));
    EXPECT_TRUE(overlap(middle, tile(1000, 8, 15, 16, 0, 1000)));
    EXPECT_FALSE(overlap(middle, tile(1000, 8, 5, 10, 0, 1000)));
    EXPECT_TRUE(covers(middle, tile(1000, 8, 12, 13, 110, 120)));
    EXPECT_FALSE(covers(middle, tile(1000, 8, 12, 21, 110, 120)));
    EXPECT_TRUE(covers(tile(1000, 8, 0, 100, 0, 1000), middle));
}

TEST(O3, WhatCannotBeDecidedCheaplyMayOverlap) {
    // Two combs with different teeth and too many of them.
    const level even[] = {{16, 1000000}};
    const level odd[] = {{24, 1000000}};
    EXPECT_EQ(compare(strided(0, even, 4), strided(4, odd, 4)), overlap_kind::unknown);
    EXPECT_TRUE(overlap(strided(0, even, 4), strided(4, odd, 4)));
    // Windows that slide over each other.
    const level windows[] = {{8, 10}, {8, 4}};
    EXPECT_EQ(compare(strided(0, windows, 8), footprint{8, 16}), overlap_kind::unknown);
    EXPECT_FALSE(covers(strided(0, windows, 8), footprint{8, 16}));
    EXPECT_TRUE(covers(footprint{0, 104}, strided(0, windows, 8)));
}

strided_array random_array(std::mt19937& random) {
    const auto upto = [&](std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(0, most)(random); };
    strided_array made;
    made.run = static_cast<std::uint64_t>(1 + upto(3));
    const std::int64_t dimensions = upto(3);
    std::int64_t stride = static_cast<std::int64_t>(made.run) + upto(2);
    std::int64_t below = 0;
    for (std::int64_t i = 0; i < dimensions; ++i) {
        const std::int64_t count = upto(5) == 0 ? upto(1) : 1 + upto(3);
        const bool negative = upto(3) == 0;
        made.levels.push_back({negative ? -stride : stride, count});
        if (negative && count > 0) {
            below += stride * (count - 1);
        }
        // Usually the next dimension lies around this one; sometimes it does not.
        stride = upto(9) == 0 ? 1 + upto(10) : stride * (count + upto(2)) + upto(1);
        stride = std::max<std::int64_t>(stride, 1);
    }
    made.offset = static_cast<std::uint64_t>(below + upto(30));
    std::shuffle(made.levels.begin(), made.levels.end(), random);
    return made;
}

TEST(O3, ComparesRandomStridedArraysAsTheirBytesSay) {
    std::mt19937 random(20240607);
    int certain = 0;
    int apart = 0;
    int shaped = 0;
    int covering = 0;
    for (int i = 0; i < 60000; ++i) {
        const strided_array a = random_array(random);
        const strided_array b = random_array(random);
        const footprint fa = a.where();
        const footprint fb = b.where();
        const std::set<std::int64_t> in_a = a.bytes();
        const std::set<std::int64_t> in_b = b.bytes();
        const bool shared = share(in_a, in_b);
        const overlap_kind told = compare(fa, fb);
        ASSERT_EQ(told, compare(fb, fa)) << "seed 20240607, pair " << i;
        if (told != overlap_kind::unknown) {
            ASSERT_EQ(told == overlap_kind::certain, shared) << "seed 20240607, pair " << i;
            shaped += fa.shape && fb.shape ? 1 : 0;
            (shared ? certain : apart) += 1;
        }
        const bool inside =
            std::all_of(in_b.begin(), in_b.end(), [&](std::int64_t one) { return in_a.count(one) != 0; });
        if (covers(fa, fb)) {
            ASSERT_TRUE(inside) << "seed 20240607, pair " << i;
            covering += fa.shape && !in_b.empty() ? 1 : 0;
        }
        if (!in_a.empty()) {
            ASSERT_EQ(fa.begin, static_cast<std::uint64_t>(*in_a.begin()));
            ASSERT_EQ(fa.end, static_cast<std::uint64_t>(*in_a.rbegin()) + 1);
        }
    }
    // The comparison must have decided some cases.
    EXPECT_GT(certain, 3000);
    EXPECT_GT(apart, 3000);
    EXPECT_GT(shaped, 1000);
    EXPECT_GT(covering, 100);
}

}  // namespace
}  // namespace weir::order
