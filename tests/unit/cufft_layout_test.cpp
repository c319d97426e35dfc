// Which layouts cuFFT can express, and by which plans: pure logic.
#include <gtest/gtest.h>

#include <limits>

#include "calls/fft/cufft_layout.hpp"

namespace weir::calls {
namespace {

constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
using way = cufft_part::way;

fft_problem complex_problem(fft_dimensions transform, fft_dimensions batch = {}) {
    fft_problem p;
    p.transform = std::move(transform);
    p.batch = std::move(batch);
    return p;
}

TEST(CufftLayout, RowsAreABatch) {
    const auto parts = cufft_parts_of(complex_problem({{8, 1, 1}}, {{5, 8, 10}}), any);
    ASSERT_TRUE(parts);
    ASSERT_EQ(parts->after.size(), 1U);
    const cufft_layout& layout = parts->after[0].layout;
    EXPECT_EQ(layout.rank, 1);
    EXPECT_EQ(layout.n[0], 8);
    EXPECT_EQ(layout.batch, 5);
    EXPECT_EQ(layout.in.distance, 8);
    EXPECT_EQ(layout.out.distance, 10);
    EXPECT_EQ(parts->executions(), 1);
}

TEST(CufftLayout, ColumnsAreABatchOfStridedLines) {
    const auto parts = cufft_parts_of(complex_problem({{8, 5, 5}}, {{5, 1, 1}}), any);
    ASSERT_TRUE(parts);
    const cufft_layout& layout = parts->after[0].layout;
    EXPECT_EQ(layout.in.stride, 5);
    EXPECT_EQ(layout.in.distance, 1);
    EXPECT_EQ(layout.batch, 5);
}

TEST(CufftLayout, AxesOfAPartOfALargerArrayNest) {
    // Of (10, 20, 30) elements, (4, 5, 6) with every second along the last axis.
    const auto parts = cufft_parts_of(complex_problem({{4, 600, 30}, {5, 30, 6}, {6, 2, 1}}), any);
    ASSERT_TRUE(parts);
    ASSERT_EQ(parts->after.size(), 1U);
    const cufft_layout& layout = parts->after[0].layout;
    EXPECT_EQ(layout.rank, 3);
    EXPECT_EQ(layout.in.stride, 2);
    EXPECT_EQ(layout.in.embed[2], 15);
    EXPECT_EQ(layout.in.embed[1], 20);
    EXPECT_EQ(layout.out.embed[2], 6);
}

TEST(CufftLayout, TheOrderOfComplexAxesDoesNotMatter) {
    const auto parts = cufft_parts_of(complex_problem({{6, 1, 1}, {4, 6, 6}}), any);
    ASSERT_TRUE(parts);
    EXPECT_EQ(parts->after[0].layout.n, (std::array<std::int64_t, 3>{4, 6, 1}));
}

TEST(CufftLayout, StridesThatDoNotNestTakeTwoPlans) {
    const auto parts = cufft_parts_of(complex_problem({{4, 7, 6}, {6, 2, 1}}), any);
    ASSERT_TRUE(parts);
    ASSERT_EQ(parts->after.size(), 2U);
    EXPECT_EQ(parts->after[0].from_to, way::in_to_out);
    EXPECT_EQ(parts->after[0].layout.n[0], 6);
    EXPECT_EQ(parts->after[0].layout.batch, 4);
    EXPECT_EQ(parts->after[1].from_to, way::out_to_out);
    EXPECT_EQ(parts->after[1].layout.n[0], 4);
    EXPECT_EQ(parts->after[1].layout.in, parts->after[1].layout.out);
}

TEST(CufftLayout, ASecondBatchTakesSeveralExecutions) {
    // Axis 1 of (3, 4, 5).
    const fft_problem p = complex_problem({{4, 5, 5}}, {{3, 20, 20}, {5, 1, 1}});
    const auto parts = cufft_parts_of(p, 3);
    ASSERT_TRUE(parts);
    EXPECT_EQ(parts->after[0].layout.batch, 5) << "the larger one is the plan's";
    EXPECT_EQ(parts->executions(), 3);
    EXPECT_FALSE(cufft_parts_of(p, 2)) << "too many";
}

TEST(CufftLayout, LinesThatRunBackwardsOrStandForManyAreBeyondIt) {
    EXPECT_FALSE(cufft_parts_of(complex_problem({{8, -1, 1}}), any));
    EXPECT_FALSE(cufft_parts_of(complex_problem({{8, 0, 1}}), any));
    EXPECT_TRUE(cufft_parts_of(complex_problem({{8, 1, 1}}, {{2, -8, 8}}), any)) << "one after the other";
}

TEST(CufftLayout, RealElementsBeginWhereAComplexOneCould) {
    fft_problem p = complex_problem({{5, 1, 1}}, {{2, 5, 3}, {2, 11, 7}});
    p.kind = fft_kind::real_to_complex;
    EXPECT_FALSE(cufft_parts_of(p, any)) << "the second execution would begin at an odd element";
    p.batch = {{2, 5, 3}, {2, 12, 7}};
    EXPECT_TRUE(cufft_parts_of(p, any));
    p.aligned = false;
    EXPECT_FALSE(cufft_parts_of(p, any));
}

TEST(CufftLayout, FromHalfASpectrumTheLastAxisComesLast) {
    fft_problem p = complex_problem({{4, 5, 8}, {8, 1, 1}});
    p.kind = fft_kind::complex_to_real;
    p.direction = fft_direction::inverse;
    EXPECT_FALSE(cufft_parts_of(p, any)) << "the operand is not preserved";
    p.preserves_input = false;
    const auto parts = cufft_parts_of(p, any);
    ASSERT_TRUE(parts);
    ASSERT_EQ(parts->before.size(), 1U);
    EXPECT_EQ(parts->before[0].from_to, way::in_to_in);
    EXPECT_EQ(parts->before[0].layout.type, cufft_type::z2z);
    EXPECT_EQ(parts->before[0].layout.batch, 5) << "half of 8, and one";
    ASSERT_EQ(parts->after.size(), 1U);
    EXPECT_EQ(parts->after[0].layout.type, cufft_type::z2d);
    EXPECT_EQ(parts->after[0].layout.rank, 1);
    ASSERT_TRUE(parts->zeroed);
    EXPECT_EQ(parts->zeroed->where.size(), 2U) << "of each row, the first element and the last";
}

TEST(CufftLayout, MoreThanThreeAxesTakeFurtherPlans) {
    fft_problem p = complex_problem({{2, 105, 60}, {3, 35, 20}, {7, 5, 4}, {5, 1, 1}});
    p.kind = fft_kind::real_to_complex;
    p.transform = {{2, 105, 63}, {3, 35, 21}, {7, 5, 3}, {5, 1, 1}};
    const auto parts = cufft_parts_of(p, any);
    ASSERT_TRUE(parts);
    ASSERT_EQ(parts->after.size(), 2U);
    EXPECT_EQ(parts->after[0].layout.rank, 3);
    EXPECT_EQ(parts->after[1].layout.type, cufft_type::z2z);
    EXPECT_EQ(parts->after[1].layout.n[0], 2);
    EXPECT_EQ(parts->after[1].layout.batch, 63);
}

}  // namespace
}  // namespace weir::calls
