// How operands get to BLAS: which are read where they are, which go by a packed copy, and how many products a batch takes.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "calls/call.hpp"
#include "calls/matmul/geometry.hpp"
#include "calls/matmul/route.hpp"
#include "weir/launch.hpp"
#include "weir/linalg.hpp"

namespace weir {
namespace {

using calls::matmul_geometry;
using calls::matmul_route;

constexpr calls::matmul_demands as_blas{true, std::numeric_limits<int>::max()};

class MatmulRoute : public ::testing::Test {
protected:
    [[nodiscard]] array of(const shape& extents, dtype type = dtype::float64) const { return zeros(extents, type, on); }
    template <class Ask>
    auto with_route(const array& a, const array& b, const matmul_options& how, const Ask& ask) const {
        const calls::matmul_arrays operands = calls::matmul_inputs(a, b, how);
        const matmul_geometry what("matmul", operands, how);
        calls::call_layout layout{cpu(), {}, calls::placement::packed(what.result_shape(), what.type())};
        for (const array& each : operands) {
            layout.inputs.push_back({calls::placement::of(each), false});
        }
        return ask(matmul_route(what, layout, as_blas));
    }
    /// The bytes of packed copies of these products.
    [[nodiscard]] std::size_t packed(const array& a, const array& b, const matmul_options& how = {}) const {
        return with_route(a, b, how, [](const matmul_route& route) { return route.workspace_bytes(); });
    }
    [[nodiscard]] calls::blas_product product(const array& a, const array& b) const {
        return with_route(a, b, {}, [](const matmul_route& route) { return route.steps(nullptr).product; });
    }

    stream on{cpu()};
};

constexpr std::size_t rounded(std::size_t bytes) {
    return (bytes + matmul_route::alignment - 1) / matmul_route::alignment * matmul_route::alignment;
}

TEST_F(MatmulRoute, WhatBlasReadsIsNotCopied) {
    const array b = of({4, 5});
    EXPECT_EQ(packed(of({3, 4}), b), 0U);
    EXPECT_EQ(packed(of({4, 3}).t(), b), 0U);
    EXPECT_EQ(packed(of({3, 9})[{slice{}, slice{2, 6}}], b), 0U) << "rows further apart";
    EXPECT_EQ(packed(of({6, 4})[{slice{0, 6, 2}}], b), 0U) << "every other row";
    EXPECT_EQ(packed(of({9, 3})[{slice{2, 6}}].t(), b), 0U);
    EXPECT_EQ(packed(of({8})[{slice{0, 8, 2}}], b), 0U) << "a vector of any step";
    EXPECT_EQ(packed(of({4, 3, 2, 4}).transpose({1, 0, 2, 3}), b), 0U) << "a batch in any order";
    EXPECT_EQ(packed(of({3, 4}).broadcast_to({6, 3, 4}), b), 0U) << "one matrix for all";
}

TEST_F(MatmulRoute, WhatItDoesNotReadIsPacked) {
    const array b = of({4, 5});
    EXPECT_EQ(packed(of({3, 8})[{slice{}, slice{0, 8, 2}}], b), rounded(12 * 8)) << "gaps in both directions";
    EXPECT_EQ(packed(of({3, 4})[{slice{{}, {}, -1}}], b), rounded(12 * 8)) << "backwards";
    EXPECT_EQ(packed(of({1, 4}).broadcast_to({3, 4}), b), rounded(12 * 8)) << "rows that are the same";
    EXPECT_EQ(packed(of({3, 4}, dtype::float32), b), rounded(12 * 8)) << "another type";
    EXPECT_EQ(packed(of({3, 4}, dtype::float16), of({4, 5}, dtype::float16)),
              rounded(12 * 4) + rounded(20 * 4) + rounded(15 * 4))
        << "16-bit types are computed in float32, and so is the result";
    EXPECT_EQ(packed(of({3, 4}), b, {.epilog = matmul_epilog::bias, .bias = of({5}, dtype::float32)}), rounded(5 * 8));
}

TEST_F(MatmulRoute, ABatchIsOneWideMatrixWhereItCanBe) {
    const calls::blas_product wide = product(of({6, 3, 4}), of({4, 5}));
    EXPECT_EQ(wide.batch.size(), 0U);
    EXPECT_EQ(wide.rows, 5);
    EXPECT_EQ(wide.columns, 18);
    const calls::blas_product vectors = product(of({6, 1, 4}), of({4, 5}));
    EXPECT_EQ(vectors.batch.size(), 0U);
    EXPECT_EQ(vectors.columns, 6);
    const calls::blas_product rows = product(of({6, 3, 4}), of({4}));
    EXPECT_EQ(rows.batch.size(), 0U);
    EXPECT_EQ(rows.columns, 18);
    const calls::blas_product merged = product(of({2, 3, 5, 4}), of({2, 3, 4, 5}));
    ASSERT_EQ(merged.batch.size(), 1U) << "axes that are one progression are one";
    EXPECT_EQ(merged.batch[0], 6);
    const calls::blas_product both = product(of({2, 1, 5, 4}), of({3, 4, 5}));
    EXPECT_EQ(both.batch.size(), 2U);
    const calls::blas_product each = product(of({3, 4}), of({6, 4, 5}));
    ASSERT_EQ(each.batch.size(), 1U);
    EXPECT_EQ(each.batch[0], 6);
}

}  // namespace
}  // namespace weir
