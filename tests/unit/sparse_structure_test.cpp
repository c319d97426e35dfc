// The order of a matrix's elements in a library that wants them by columns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "calls/sparse/structure.hpp"
#include "support/messages.hpp"
#include "weir/error.hpp"

namespace weir::calls {
namespace {

using test::message_of;
using ::testing::HasSubstr;

using indices = std::vector<std::int32_t>;

/// The lower triangle of
///     a . .
///     b c .
///     d . e
const indices lower_offsets{0, 1, 3, 5};
const indices lower_columns{0, 0, 1, 0, 2};
/// The upper one of its transpose: the same elements a, b, d, c, e in another order.
const indices upper_offsets{0, 3, 4, 5};
const indices upper_columns{0, 1, 2, 1, 2};

sparse_system system_of(matrix_kind kind, matrix_triangle given, dtype values) {
    return {kind, given, values, dtype::int32, 3, 5};
}

template <class Index>
std::span<const Index> view(const std::vector<Index>& of) {
    return of;
}

TEST(SparseStructure, AGeneralMatrixByColumns) {
    const sparse_system what = system_of(matrix_kind::general, matrix_triangle::full, dtype::float64);
    const column_structure<std::int32_t> made = whole_by_columns(what, view(lower_offsets), view(lower_columns));
    EXPECT_EQ(made.starts, (indices{0, 3, 4, 5}));
    EXPECT_EQ(made.rows, (indices{0, 1, 2, 1, 2}));
    EXPECT_EQ(made.sources, (indices{0, 1, 3, 2, 4}));
}

TEST(SparseStructure, ATriangleIsFilledUp) {
    const sparse_system what = system_of(matrix_kind::symmetric, matrix_triangle::lower, dtype::complex128);
    const column_structure<std::int32_t> made = whole_by_columns(what, view(lower_offsets), view(lower_columns));
    EXPECT_EQ(made.starts, (indices{0, 3, 5, 7}));
    EXPECT_EQ(made.rows, (indices{0, 1, 2, 0, 1, 0, 2}));
    EXPECT_EQ(made.sources, (indices{0, 1, 3, 1, 2, 3, 4})) << "symmetric: not conjugated, though complex";
}

TEST(SparseStructure, TheOtherTriangleOfAHermitianMatrixIsConjugated) {
    const sparse_system what = system_of(matrix_kind::hermitian, matrix_triangle::upper, dtype::complex64);
    const column_structure<std::int32_t> made = whole_by_columns(what, view(upper_offsets), view(upper_columns));
    EXPECT_EQ(made.rows, (indices{0, 1, 2, 0, 1, 0, 2}));
    EXPECT_EQ(made.sources, (indices{0, ~1, ~2, 1, 3, 2, 4}));
}

TEST(SparseStructure, TheLowerTriangleFromEither) {
    const column_structure<std::int32_t> of_lower =
        lower_by_columns(system_of(matrix_kind::positive_definite, matrix_triangle::lower, dtype::complex128),
                         view(lower_offsets), view(lower_columns));
    const column_structure<std::int32_t> of_upper =
        lower_by_columns(system_of(matrix_kind::positive_definite, matrix_triangle::upper, dtype::complex128),
                         view(upper_offsets), view(upper_columns));
    EXPECT_EQ(of_lower.starts, (indices{0, 3, 4, 5}));
    EXPECT_EQ(of_lower.starts, of_upper.starts);
    EXPECT_EQ(of_lower.rows, of_upper.rows);
    EXPECT_EQ(of_lower.sources, (indices{0, 1, 3, 2, 4}));
    EXPECT_EQ(of_upper.sources, (indices{~0, ~1, ~2, ~3, ~4}));
}

TEST(SparseStructure, ElementsOfTheOtherTriangleAreLeftOut) {
    // a b / b c, both stored
    const indices offsets{0, 2, 4};
    const indices columns{0, 1, 0, 1};
    const sparse_system lower{matrix_kind::symmetric, matrix_triangle::lower, dtype::float64, dtype::int32, 2, 4};
    EXPECT_EQ(whole_by_columns(lower, view(offsets), view(columns)).sources, (indices{0, 2, 2, 3}));
    sparse_system upper = lower;
    upper.triangle = matrix_triangle::upper;
    EXPECT_EQ(whole_by_columns(upper, view(offsets), view(columns)).sources, (indices{0, 1, 1, 3}));
}

TEST(SparseStructure, WideIndices) {
    const std::vector<std::int64_t> offsets{0, 1, 2};
    const std::vector<std::int64_t> columns{1, 0};
    EXPECT_EQ(mistake_in(view(offsets), view(columns), 2), "");
    EXPECT_NE(mistake_in(view(offsets), view(std::vector<std::int64_t>{std::int64_t{1} << 40, 0}), 2), "");
}

TEST(SparseStructure, MoreElementsThanIndicesCountAreRefused) {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    EXPECT_EQ(counted<std::int32_t>(most), most);
    EXPECT_THAT(message_of<argument_error>([] { static_cast<void>(counted<std::int32_t>(most + 1)); }),
                HasSubstr("has 2147483648 elements, more than its indices can count: give int64 indices"));
    EXPECT_EQ(counted<std::int64_t>(most + 1), most + 1);
}

TEST(SparseStructure, OtherIndicesThanThoseAnalyzedAreRefused) {
    const sparse_system what = system_of(matrix_kind::general, matrix_triangle::full, dtype::float64);
    const auto bytes = [](const indices& of) { return reinterpret_cast<const std::byte*>(of.data()); };
    const auto mistake = [&](const analyzed_indices& known, const indices& offsets, const indices& columns) {
        return message_of<structure_error>([&] { known.expect(what, bytes(offsets), bytes(columns)); });
    };
    analyzed_indices known;
    EXPECT_EQ(mistake(known, lower_offsets, lower_columns), "nothing was thrown") << "nothing was analyzed";
    known.take(what, bytes(lower_offsets), bytes(lower_columns));
    EXPECT_EQ(mistake(known, indices(lower_offsets), indices(lower_columns)), "nothing was thrown");
    EXPECT_THAT(mistake(known, {0, 1, 2, 5}, lower_columns), HasSubstr("call plan before factorize"));
    EXPECT_THAT(mistake(known, lower_offsets, {0, 0, 1, 1, 2}), HasSubstr("call plan before factorize"));
    EXPECT_THROW(known.take(what, bytes(lower_offsets), bytes({0, 0, 7, 0, 2})), structure_error);
    EXPECT_EQ(mistake(known, upper_offsets, upper_columns), "nothing was thrown") << "the analysis has failed";
}

}  // namespace
}  // namespace weir::calls
