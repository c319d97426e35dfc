// Scenarios E9 and E10 for sparse systems on every device: solutions by element type, kind of matrix, triangle, index type, number
// of right-hand sides and strides.
#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include "support/arrays.hpp"
#include "support/devices.hpp"
#include "support/sparse_needs.hpp"
#include "support/sparse_systems.hpp"
#include "weir/launch.hpp"
#include "weir/sparse.hpp"

namespace weir {
namespace {

using test::here;
using test::make_array;
using test::make_csr;
using test::residual;
using test::right_hand_side;
using test::sparse_matrix;
using test::values_of;

template <class T, class Index>
void solves_each_kind() {
    const stream on(here());
    constexpr std::int64_t n = 23;
    for (const matrix_kind kind :
         {matrix_kind::general, matrix_kind::symmetric, matrix_kind::hermitian, matrix_kind::positive_definite}) {
        const test::dense_matrix<T> a = sparse_matrix<T>(kind, n);
        const std::vector<T> b = right_hand_side<T>(n);
        for (const matrix_triangle given : {matrix_triangle::full, matrix_triangle::lower, matrix_triangle::upper}) {
            if (kind == matrix_kind::general && given != matrix_triangle::full) {
                continue;
            }
            SCOPED_TRACE(std::to_string(static_cast<int>(kind)) + " " + std::to_string(static_cast<int>(given)));
            array x =
                solve(on, make_csr<T, Index>(on, a, given), make_array(on, {n}, b), {.kind = kind, .triangle = given});
            EXPECT_EQ(x.dtype(), dtype_of<T>);
            EXPECT_EQ(x.device(), here());
            EXPECT_LT(residual(a, values_of<T>(x), b), 1.0);
        }
    }
}

WEIR_CONFORMANCE(E10, SolutionsOfFloat32) {
    WEIR_NEEDS_SOLVER();
    solves_each_kind<float, std::int32_t>();
}
WEIR_CONFORMANCE(E10, SolutionsOfFloat64) {
    WEIR_NEEDS_SOLVER();
    solves_each_kind<double, std::int32_t>();
}
WEIR_CONFORMANCE(E10, SolutionsOfComplex64) {
    WEIR_NEEDS_SOLVER();
    solves_each_kind<std::complex<float>, std::int64_t>();
}
WEIR_CONFORMANCE(E10, SolutionsOfComplex128) {
    WEIR_NEEDS_SOLVER();
    solves_each_kind<std::complex<double>, std::int32_t>();
}
WEIR_CONFORMANCE(E10, SolutionsWithWideIndices) {
    WEIR_NEEDS_SOLVER();
    solves_each_kind<double, std::int64_t>();
}

/// Elements of the triangle that is not given, which nothing may read.
WEIR_CONFORMANCE(E10, TheOtherTriangleIsNotRead) {
    WEIR_NEEDS_SOLVER();
    const stream on(here());
    constexpr std::int64_t n = 12;
    for (const matrix_kind kind : {matrix_kind::symmetric, matrix_kind::positive_definite}) {
        const test::dense_matrix<double> a = sparse_matrix<double>(kind, n);
        const std::vector<double> b = right_hand_side<double>(n);
        for (const matrix_triangle given : {matrix_triangle::lower, matrix_triangle::upper}) {
            test::dense_matrix<double> spoilt = a;
            for (std::int64_t i = 0; i < n; ++i) {
                for (std::int64_t j = 0; j < i; ++j) {
                    (given == matrix_triangle::lower ? spoilt.at(j, i) : spoilt.at(i, j)) = 1000.0;
                }
            }
            array x = solve(on, make_csr(on, spoilt), make_array(on, {n}, b), {.kind = kind, .triangle = given});
            EXPECT_LT(residual(a, values_of<double>(x), b), 1.0);
        }
    }
}

WEIR_CONFORMANCE(E9, SeveralRightHandSidesOfAnyStrides) {
    WEIR_NEEDS_SOLVER();
    const stream on(here());
    constexpr std::int64_t n = 17;
    constexpr std::int64_t k = 5;
    const test::dense_matrix<double> a = sparse_matrix<double>(matrix_kind::general, n);
    const std::vector<double> b = right_hand_side<double>(n, k);
    const csr_matrix matrix = make_csr(on, a);
    array rows = make_array(on, {n, k}, b);  // C order
    EXPECT_LT(residual(a, values_of<double>(solve(on, matrix, rows)), b), 1.0);

    array columns = empty({k, n}, dtype::float64, on);  // Fortran order
    copy(on, columns.t(), rows);
    EXPECT_LT(residual(a, values_of<double>(solve(on, matrix, columns.t())), b), 1.0);

    array wide = full({n, 2 * k}, -1.0, dtype::float64, on);  // every other column
    array part = wide[{slice{}, slice{0, 2 * k, 2}}];
    copy(on, part, rows);
    array out = full({2 * n, k}, -7.0, dtype::float64, on);
    solve(on, matrix, part, out[{slice{0, 2 * n, 2}}]);
    EXPECT_LT(residual(a, values_of<double>(copy(on, out[{slice{0, 2 * n, 2}}])), b), 1.0);
    EXPECT_EQ(values_of<double>(copy(on, out[{slice{1, 2 * n, 2}}])), std::vector<double>(n * k, -7.0))
        << "what lies between must stay as it is";

    array one = rows[{slice{}, slice{2, 3}}];  // (n, 1)
    const std::vector<double> single = values_of<double>(copy(on, one));
    array x = solve(on, matrix, one);
    EXPECT_EQ(x.shape(), (shape{n, 1}));
    EXPECT_LT(residual(a, values_of<double>(x), single), 1.0);
}

WEIR_CONFORMANCE(E9, InPlaceAndOverlapping) {
    WEIR_NEEDS_SOLVER();
    const stream on(here());
    constexpr std::int64_t n = 9;
    const test::dense_matrix<double> a = sparse_matrix<double>(matrix_kind::general, n);
    const csr_matrix matrix = make_csr(on, a);
    const std::vector<double> b = right_hand_side<double>(n, 2);
    array x = make_array(on, {n, 2}, b);
    solve(on, matrix, x, x);
    EXPECT_LT(residual(a, values_of<double>(x), b), 1.0);

    array line = make_array(on, {2 * n}, right_hand_side<double>(2 * n));
    const std::vector<double> right = values_of<double>(copy(on, line.slice(0, n)));
    solve(on, matrix, line.slice(0, n), line.slice(3, n + 3));
    EXPECT_LT(residual(a, values_of<double>(copy(on, line.slice(3, n + 3))), right), 1.0);
}

WEIR_CONFORMANCE(E10, EmptyAndTiny) {
    WEIR_NEEDS_SOLVER();
    const stream on(here());
    const csr_matrix nothing{make_array(on, {1}, std::vector<std::int32_t>{0}),
                             empty({0}, dtype::int32, on),
                             empty({0}, dtype::float64, on),
                             {0, 0}};
    EXPECT_EQ(solve(on, nothing, empty({0}, dtype::float64, on)).size(), 0);
    EXPECT_EQ(solve(on, nothing, empty({0, 3}, dtype::float64, on)).shape(), (shape{0, 3}));
    const csr_matrix one = make_csr(on, test::dense_matrix<double>{1, {4.0}});
    EXPECT_EQ(values_of<double>(solve(on, one, make_array(on, {1}, std::vector<double>{2.0}))),
              std::vector<double>{0.5});
    EXPECT_EQ(solve(on, one, empty({1, 0}, dtype::float64, on)).shape(), (shape{1, 0}));
}

WEIR_CONFORMANCE(E9, StridedValuesAndIndices) {
    WEIR_NEEDS_SOLVER();
    const stream on(here());
    const test::dense_matrix<double> a = sparse_matrix<double>(matrix_kind::general, 8);
    csr_matrix matrix = make_csr(on, a);
    const auto spread = [&](const array& of) {
        array wide = zeros({2 * of.size()}, of.dtype(), on);
        array part = wide[{slice{0, 2 * of.size(), 2}}];
        copy(on, part, of);
        return part;
    };
    matrix.values = spread(matrix.values);
    matrix.column_indices = spread(matrix.column_indices);
    matrix.row_offsets = spread(matrix.row_offsets);
    const std::vector<double> b = right_hand_side<double>(8);
    EXPECT_LT(residual(a, values_of<double>(solve(on, matrix, make_array(on, {8}, b))), b), 1.0);
}

WEIR_CONFORMANCE(E1, ExecutionElsewhereBlocksAndGivesTheResultBack) {
    WEIR_NEEDS_SOLVER();
    const std::vector<double> b = right_hand_side<double>(11, 2);
    const test::dense_matrix<double> a = sparse_matrix<double>(matrix_kind::general, 11);
    const device other = here().kind() == device_kind::sim ? cpu() : sim(0);
    const stream on(here());
    csr_matrix matrix = make_csr(on, a);
    array right = make_array(on, {11, 2}, b);
    array x = solve(matrix, right, {.execution = other});
    EXPECT_EQ(x.device(), here());
    EXPECT_TRUE(x.ready()) << "the call blocks (rule P2)";
    fill(on, right, 0.0);
    fill(on, matrix.values, 0.0);
    EXPECT_LT(residual(a, values_of<double>(x), b), 1.0);
}

}  // namespace
}  // namespace weir
