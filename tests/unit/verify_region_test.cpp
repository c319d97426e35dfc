// Which bytes two accesses share, compared with counting them.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "verify/region.hpp"

namespace weir_verify {
namespace {

std::set<std::uint64_t> bytes_of(const region& one, std::size_t depth = 0, std::uint64_t base = 0) {
    std::set<std::uint64_t> all;
    if (one.levels.empty()) {
        for (std::uint64_t byte = one.begin; byte < one.end; ++byte) {
            all.insert(byte);
        }
    } else if (depth == one.levels.size()) {
        for (std::uint64_t byte = 0; byte < one.run; ++byte) {
            all.insert(one.begin + base + byte);
        }
    } else {
        for (std::uint64_t i = 0; i < one.levels[depth].count; ++i) {
            all.merge(bytes_of(one, depth + 1, base + i * one.levels[depth].stride));
        }
    }
    return all;
}

bool share(const std::set<std::uint64_t>& a, const std::set<std::uint64_t>& b) {
    return std::any_of(a.begin(), a.end(), [&](std::uint64_t byte) { return b.contains(byte); });
}

region box(std::uint64_t begin, std::uint64_t run, std::vector<level> levels) {
    region one{begin, begin + run, run, std::move(levels)};
    for (const level& each : one.levels) {
        one.end += each.stride * (each.count - 1);
    }
    return one;
}

TEST(VerifyRegion, O3_is_exact_for_any_two_boxes) {
    std::mt19937 random(1);  // NOLINT: the same boxes every time
    const auto below = [&](std::uint64_t n) { return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(random); };
    const auto any_box = [&] {
        std::vector<level> levels;
        for (std::uint64_t i = below(4); i > 0; --i) {
            levels.push_back({1 + below(20), 2 + below(4)});
        }
        std::sort(levels.begin(), levels.end(), [](const level& a, const level& b) { return a.stride > b.stride; });
        return levels.empty() ? region{below(60), 60 + below(20), 0, {}} : box(below(60), 1 + below(5), levels);
    };
    int apart = 0;
    for (int i = 0; i < 20'000; ++i) {
        const region a = any_box();
        const region b = any_box();
        ASSERT_EQ(flaw_of(a), "");
        const bool expected = share(bytes_of(a), bytes_of(b));
        ASSERT_EQ(compare(a, b), expected ? sharing::certain : sharing::none) << to_string(a) << ", " << to_string(b);
        if (covers(a, b)) {
            const auto outer = bytes_of(a);
            const auto inner = bytes_of(b);
            ASSERT_TRUE(std::includes(outer.begin(), outer.end(), inner.begin(), inner.end()));
        }
        apart += expected ? 0 : 1;
    }
    EXPECT_GT(apart, 2000);
}

TEST(VerifyRegion, O3_large_boxes_of_one_parent_are_told_apart_at_once) {
    const std::uint64_t row = 1 << 20;
    const auto tile = [&](std::uint64_t x, std::uint64_t y) {
        return box(x * 512 + y * 1024 * row, 512, {{row, 1024}});
    };
    for (std::uint64_t x = 0; x < 20; ++x) {
        EXPECT_EQ(compare(tile(0, 0), tile(x, 0)), x == 0 ? sharing::certain : sharing::none);
        EXPECT_EQ(compare(tile(x, 0), tile(0, 1)), sharing::none);
    }
    // A million rows, every second one.
    const region even = box(0, 64, {{2 * row, 1 << 20}});
    const region odd = box(row, 64, {{2 * row, 1 << 20}});
    EXPECT_EQ(compare(even, odd), sharing::none);
    EXPECT_EQ(compare(even, even), sharing::certain);
}

TEST(VerifyRegion, O3_what_would_take_too_long_may_overlap) {
    const region a = box(0, 1, {{1ULL << 40, 1000}, {1 << 20, 1000}, {6, 1000}});
    const region b = box(3, 1, {{(1ULL << 40) - 6, 1000}, {(1 << 20) - 6, 1000}, {6, 1000}});
    EXPECT_NE(compare(a, b), sharing::certain);
    const region c = box(1, 1, {{12, 1ULL << 40}});
    const region d = box(0, 1, {{14, 1ULL << 40}});
    EXPECT_EQ(compare(c, d), sharing::unknown) << "odd and even: to see it, a thousand billion runs are compared";
}

TEST(VerifyRegion, V4_what_contradicts_itself_is_refused) {
    EXPECT_EQ(flaw_of({0, 64, 0, {}}), "");
    EXPECT_NE(flaw_of({65, 64, 0, {}}), "");
    EXPECT_NE(flaw_of({0, ~std::uint64_t{0}, 0, {}}), "");
    EXPECT_NE(flaw_of({0, 64, 0, {{32, 2}}}), "");
    EXPECT_NE(flaw_of({0, 64, 65, {{32, 2}}}), "");
    EXPECT_NE(flaw_of({0, 64, 8, {{32, 2}}}), "") << "ends at 40";
    EXPECT_EQ(flaw_of({0, 40, 8, {{32, 2}}}), "");
    EXPECT_NE(flaw_of({0, 40, 8, {{0, 2}, {32, 2}}}), "");
    EXPECT_NE(flaw_of({0, 40, 8, {{1ULL << 63, 3}}}), "");
    EXPECT_NE(flaw_of({0, 46, 8, {{2, 4}, {32, 2}}}), "") << "the outermost level comes first";
}

}  // namespace
}  // namespace weir_verify
