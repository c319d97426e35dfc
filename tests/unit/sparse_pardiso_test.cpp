// Sparse systems on the CPU by MKL's PARDISO: how it is used, and what happens if it fails. The conformance suite checks the solutions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/arrays.hpp"
#include "support/fake_pardiso.hpp"
#include "support/messages.hpp"
#include "support/sparse_systems.hpp"
#include "weir/testing.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::fake_pardiso;
using test::message_of;
using test::residual;
using test::right_hand_side;
using test::sparse_matrix;
using test::values_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using numbers = std::vector<double>;

constexpr std::int64_t size = 10;
constexpr int analysis = 11;
constexpr int factorization = 22;
constexpr int solution = 33;

class SparseByPardiso : public ::testing::Test {
protected:
    void SetUp() override {
        if (!fake_pardiso::in_use()) {
            GTEST_SKIP() << "WEIR_PARDISO_LIBRARY names another library than the fake, which the test tells what to do";
        }
        mistakes_ = fake_pardiso::mistakes();
    }
    void TearDown() override {
        if (fake_pardiso::in_use()) {
            cpu().synchronize();
            EXPECT_EQ(fake_pardiso::mistakes(), mistakes_);
        }
    }

    /// All four places are stored, so that only the values decide where the diagonal has zeros.
    [[nodiscard]] csr_matrix two_by_two(numbers values) const {
        return make_csr(s1, test::csr_elements<double>{{0, 2, 4}, {0, 1, 0, 1}, std::move(values)});
    }
    /// Why there is no solution.
    [[nodiscard]] std::string said_of(const csr_matrix& a, matrix_kind kind) const {
        const array x = solve(s1, a, ones({a.shape[0]}, dtype::float64, s1), {.kind = kind});
        return message_of<operation_error>([&] { static_cast<void>(values_of<double>(x)); });
    }

    fake_pardiso named_;
    stream s1{cpu()};
    stream s2{cpu()};
    unsigned long long mistakes_ = 0;
};

TEST_F(SparseByPardiso, EachPhaseIsOneOfTheLibrarys) {
    const test::dense_matrix<double> elements = sparse_matrix<double>(matrix_kind::general, size);
    const numbers right = right_hand_side<double>(size);
    const unsigned long long analyses = fake_pardiso::phases(analysis);
    const unsigned long long factorizations = fake_pardiso::phases(factorization);
    const unsigned long long solutions = fake_pardiso::phases(solution);
    direct_solver s(make_csr(s1, elements), test::make_array(s1, {size}, right));
    s.plan(s1);
    EXPECT_THAT(explain(s).to_string(), HasSubstr("PARDISO"));
    s.factorize(s1);
    EXPECT_LT(residual(elements, values_of<double>(s.solve(s1)), right), 1.0);
    s.factorize(s2);
    EXPECT_LT(residual(elements, values_of<double>(s.solve(s2)), right), 1.0);
    EXPECT_EQ(fake_pardiso::phases(analysis), analyses + 1);
    EXPECT_EQ(fake_pardiso::phases(factorization), factorizations + 2);
    EXPECT_EQ(fake_pardiso::phases(solution), solutions + 2);
}

TEST_F(SparseByPardiso, SolutionsOfOneFactorizationComeOneAfterTheOther) {
    const test::dense_matrix<double> elements = sparse_matrix<double>(matrix_kind::symmetric, size);
    const numbers right = right_hand_side<double>(size);
    direct_solver s(make_csr(s1, elements), test::make_array(s1, {size}, right), {.kind = matrix_kind::symmetric});
    s.plan(s1);
    s.factorize(s1);
    cpu().synchronize();
    testing::gate held;
    held.hold(s1);
    array x = s.solve(s1);
    array y = s.solve(s2);  // after the first: the library's handle has one workspace
    EXPECT_FALSE(x.ready());
    EXPECT_FALSE(y.ready());
    held.open();
    EXPECT_LT(residual(elements, values_of<double>(x), right), 1.0);
    EXPECT_LT(residual(elements, values_of<double>(y), right), 1.0);
}

/// The columns of many right-hand sides are next to each other, or each is solved by a call.
TEST_F(SparseByPardiso, ColumnsThatAreApartAreSolvedOneByOne) {
    const test::dense_matrix<double> elements = sparse_matrix<double>(matrix_kind::general, size);
    const numbers right = right_hand_side<double>(size, 3);
    const array rows = test::make_array(s1, {size, 3}, right);
    direct_solver s(make_csr(s1, elements), rows);
    s.plan(s1);
    s.factorize(s1);
    const unsigned long long solutions = fake_pardiso::phases(solution);
    EXPECT_LT(residual(elements, values_of<double>(s.solve(s1)), right), 1.0);
    EXPECT_LE(fake_pardiso::phases(solution), solutions + 3);
    EXPECT_GT(fake_pardiso::phases(solution), solutions);
}

TEST_F(SparseByPardiso, NothingIsLeftBehind) {
    const test::dense_matrix<double> elements = sparse_matrix<double>(matrix_kind::general, size);
    const numbers right = right_hand_side<double>(size);
    const unsigned long long systems = fake_pardiso::systems();
    {
        testing::gate held;
        held.hold(s1);
        direct_solver s(make_csr(s1, elements), test::make_array(s1, {size}, right));
        s.plan(s1);
        s.factorize(s1);
        array x = s.solve(s1);
        s.free();
        held.open();
        EXPECT_LT(residual(elements, values_of<double>(x), right), 1.0);
    }
    cpu().synchronize();
    while (fake_pardiso::systems() > systems) {
        std::this_thread::
            yield();  // a thread of Weir's releases what is complete, a little later; ctest has a time limit
    }
    EXPECT_EQ(fake_pardiso::systems(), systems);
}

TEST_F(SparseByPardiso, WhatTheLibrarySaysIsPassedOn) {
    const csr_matrix a = two_by_two({2, 1, 1, 3});
    fake_pardiso::fail(factorization, 1, -2);
    EXPECT_THAT(said_of(a, matrix_kind::general),
                AllOf(HasSubstr("sparse factorization"), HasSubstr("could not get memory for the factors")));
    fake_pardiso::fail(factorization, 1, -10);
    EXPECT_THAT(said_of(a, matrix_kind::general), HasSubstr("failed (error -10)"));
    fake_pardiso::fail(solution, 1, -5);
    EXPECT_THAT(said_of(a, matrix_kind::general),
                AllOf(HasSubstr("sparse solution"), HasSubstr("found no solution (error -5)")));
    const array b = test::make_array(s1, {2}, numbers{3, 4});
    EXPECT_THAT(values_of<double>(solve(s1, a, b)), ElementsAre(1, 1));
}

/// An analysis that fails for its values is repeated for those of the factorization.
TEST_F(SparseByPardiso, AFailedAnalysisIsRepeated) {
    const array b = test::make_array(s1, {2}, numbers{3, 4});
    direct_solver s(two_by_two({2, 1, 1, 3}), b);
    fake_pardiso::fail(analysis, 1, -3);
    s.plan(s1);
    s.factorize(s1);
    EXPECT_THAT(values_of<double>(s.solve(s1)), ElementsAre(1, 1));
    fake_pardiso::fail(analysis, 1, -3);
    fake_pardiso::fail(analysis, 1, -3);  // once the first has been
    s.plan(s1);
    const completion singular = s.factorize(s1);
    EXPECT_THAT(message_of<operation_error>([&] { singular.synchronize(); }), HasSubstr("PARDISO: error -3"));
}

/// The library replaces such pivots, and reports success.
TEST_F(SparseByPardiso, ASingularMatrixIsRefused) {
    EXPECT_THAT(said_of(two_by_two({1, 2, 2, 4}), matrix_kind::general),
                HasSubstr("is singular (PARDISO: 1 pivot was nearly 0)"));
    EXPECT_THAT(said_of(two_by_two({1, 2, 2, 4 + 1e-15}), matrix_kind::symmetric),
                AllOf(HasSubstr("the matrix is singular, or PARDISO cannot factorize it as symmetric"),
                      HasSubstr("(1 pivot was nearly 0)"), HasSubstr("name it general")));
    EXPECT_THAT(said_of(two_by_two({1, 2, 2, 1}), matrix_kind::positive_definite),
                AllOf(HasSubstr("not positive definite"), HasSubstr("PARDISO: error -4, row 2")));
}

/// The library calls its input inconsistent where there are no elements.
TEST_F(SparseByPardiso, AMatrixWithoutElementsIsSingular) {
    const csr_matrix none = make_csr(s1, test::csr_elements<double>{{0, 0, 0}, {}, {}});
    EXPECT_THAT(said_of(none, matrix_kind::general), HasSubstr("is singular (PARDISO: all elements are 0)"));
    fake_pardiso::fail(factorization, 1, -1);
    EXPECT_THAT(said_of(two_by_two({0, 0, 0, 0}), matrix_kind::general),
                HasSubstr("is singular (PARDISO: all elements are 0)"));
    fake_pardiso::fail(factorization, 1, -1);
    EXPECT_THAT(said_of(two_by_two({2, 1, 1, 3}), matrix_kind::general), HasSubstr("failed (error -1)"));
}

TEST_F(SparseByPardiso, RowsAreMatchedAgainForValuesThatNeedAnotherOrder) {
    const array known = test::make_array(s1, {2}, numbers{3, 8});
    csr_matrix given = two_by_two({1, 0, 0, 1});
    direct_solver s(given, known);
    s.plan(s1);
    s.factorize(s1);
    EXPECT_THAT(values_of<double>(s.solve(s1)), ElementsAre(3, 8));
    const unsigned long long analyses = fake_pardiso::phases(analysis);
    given.values = test::make_array(s1, {4}, numbers{0, 2, 4, 0});
    s.reset_operands(given);
    s.factorize(s1);
    EXPECT_THAT(values_of<double>(s.solve(s1)), ElementsAre(2, 1.5));
    EXPECT_EQ(fake_pardiso::phases(analysis), analyses + 1);
    given.values = test::make_array(s1, {4}, numbers{0, 1, 1, 0});
    s.reset_operands(given);
    s.factorize(s1);
    EXPECT_THAT(values_of<double>(s.solve(s1)), ElementsAre(8, 3));
    EXPECT_EQ(fake_pardiso::phases(analysis), analyses + 1) << "the order of the rows fits";
}

/// The library wants the whole diagonal of a matrix of which it has one triangle; the fake counts what is missing as a mistake.
TEST_F(SparseByPardiso, ADiagonalThatIsNotStoredIsAdded) {
    const csr_matrix given = make_csr(
        s1, test::csr_elements<double>{{0, 1, 2}, {1, 0}, {2.0, 2.0}});  // symmetric, with zeros on the diagonal
    const array b = test::make_array(s1, {2}, numbers{4, 6});
    EXPECT_THAT(values_of<double>(solve(s1, given, b, {.kind = matrix_kind::symmetric})), ElementsAre(3, 2));
}

/// The library takes the upper triangle, and gets the conjugates of the lower one.
TEST_F(SparseByPardiso, TheLowerTriangleOfAHermitianMatrixIsConjugated) {
    using complex = std::complex<double>;
    const test::dense_matrix<complex> elements = sparse_matrix<complex>(matrix_kind::hermitian, size);
    const std::vector<complex> right = right_hand_side<complex>(size);
    const array b = test::make_array(s1, {size}, right);
    for (const matrix_triangle each : {matrix_triangle::lower, matrix_triangle::upper, matrix_triangle::full}) {
        const array x = solve(s1, make_csr(s1, elements, each), b, {.kind = matrix_kind::hermitian, .triangle = each});
        EXPECT_LT(residual(elements, values_of<complex>(x), right), 1.0);
    }
}

}  // namespace
}  // namespace weir
