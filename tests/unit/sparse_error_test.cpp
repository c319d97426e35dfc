// What solve refuses before it enqueues anything, and the messages (rule X10).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/arrays.hpp"
#include "support/messages.hpp"
#include "weir/error.hpp"
#include "weir/sparse.hpp"

namespace weir {
namespace {

using test::make_array;
using test::message_of;
using ::testing::HasSubstr;

class SparseErrors : public ::testing::Test {
protected:
    stream on{cpu()};
    csr_matrix a{make_array(on, {3}, std::vector<std::int32_t>{0, 1, 2}),
                 make_array(on, {2}, std::vector<std::int32_t>{0, 1}),
                 make_array(on, {2}, std::vector<double>{1, 2}),
                 {2, 2}};
    array b = ones({2}, dtype::float64, on);

    template <class Error>
    [[nodiscard]] std::string refused(const solve_options& how = {}) const {
        return message_of<Error>([&] { static_cast<void>(solve(on, a, b, how)); });
    }
};

TEST_F(SparseErrors, Shapes) {
    a.shape = {2, 3};
    EXPECT_THAT(refused<argument_error>(), HasSubstr("the matrix has shape (2, 3); only a square one can be solved"));
    a.shape = {4, 4};
    EXPECT_THAT(refused<argument_error>(), HasSubstr("the row offsets have shape (3,); a matrix of 4 rows has (5,)"));
    a.shape = {2, 2};
    b = ones({3}, dtype::float64, on);
    EXPECT_THAT(refused<argument_error>(),
                HasSubstr("the right-hand side has shape (3,); for a matrix of 2 rows give (2,), "
                          "or (2, k) for k of them"));
    b = ones({2, 1, 1}, dtype::float64, on);
    EXPECT_THAT(refused<argument_error>(), HasSubstr("the right-hand side has shape (2, 1, 1)"));
    a.values = ones({3}, dtype::float64, on);
    EXPECT_THAT(refused<argument_error>(), HasSubstr("give one of each for every element"));
    EXPECT_THROW(direct_solver(a, b), argument_error);
}

TEST_F(SparseErrors, ElementTypes) {
    b = ones({2}, dtype::float32, on);
    EXPECT_THAT(refused<argument_type_error>(),
                HasSubstr("the matrix has elements of float64, the right-hand side of float32"));
    csr_matrix integers = a;
    integers.values = ones({2}, dtype::int64, on);
    EXPECT_THAT(message_of<argument_type_error>([&] { static_cast<void>(solve(on, integers, b)); }),
                HasSubstr("the values are int64; convert them to float32"));
    a.row_offsets = astype(on, a.row_offsets, dtype::int64);
    EXPECT_THAT(refused<argument_type_error>(), HasSubstr("the row offsets are int64, the column indices int32"));
}

TEST_F(SparseErrors, Devices) {
    b = ones({2}, dtype::float64, stream(sim(0)));
    EXPECT_THAT(refused<argument_error>(), HasSubstr("the matrix lies on cpu, the right-hand side on sim:0"));
    b = ones({2}, dtype::float64, on);
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(solve(stream(sim(0)), a, b)); }),
                HasSubstr("pass a stream of cpu"));
}

TEST_F(SparseErrors, ATriangleOfAGeneralMatrix) {
    EXPECT_THAT(refused<argument_error>({.triangle = matrix_triangle::lower}),
                HasSubstr("a triangle says nothing of a general matrix"));
}

TEST_F(SparseErrors, AClosedStream) {
    stream closed{cpu()};
    closed.close();
    EXPECT_THROW(static_cast<void>(solve(closed, a, b)), state_error);
}

}  // namespace
}  // namespace weir
