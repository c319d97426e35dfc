// What matmul refuses before anything is enqueued, and what the messages say (rule X10).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "support/arrays.hpp"
#include "support/messages.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"
#include "weir/linalg.hpp"

namespace weir {
namespace {

using test::message_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

class MatmulErrors : public ::testing::Test {
protected:
    [[nodiscard]] array of(const shape& extents, dtype type = dtype::float64) const { return ones(extents, type, on); }
    template <class Error>
    [[nodiscard]] std::string refused(const array& a, const array& b, const matmul_options& how = {}) const {
        return message_of<Error>([&] { static_cast<void>(matmul(on, a, b, how)); });
    }
    template <class Error>
    [[nodiscard]] std::string refused(const matmul_options& how) const {
        return refused<Error>(of({2, 3}), of({3, 4}), how);
    }

    stream on{cpu()};
};

TEST_F(MatmulErrors, Shapes) {
    EXPECT_THAT(refused<argument_error>(of({2, 3}), of({4, 5})),
                AllOf(HasSubstr("a has shape (2, 3), b (4, 5)"), HasSubstr("the last axis of a has 3 elements"),
                      HasSubstr("the axis of b that it meets 4")));
    EXPECT_THAT(refused<argument_error>(of({3}), of({2})), HasSubstr("the axis of b that it meets 2"));
    EXPECT_THAT(refused<argument_error>(of({}), of({2})), HasSubstr("an operand has no axis"));
    EXPECT_THAT(refused<argument_error>(of({2}), of({})), HasSubstr("multiply by a number with *"));
    EXPECT_THAT(refused<argument_error>(of({2, 3, 4}), of({3, 4, 5})), HasSubstr("the axes before the last two"));
    array out = of({2, 5});
    EXPECT_THAT(message_of<argument_error>([&] {
                    matmul(on, of({2, 3}), of({3, 4}), out);
                }),
                HasSubstr("the result has shape (2, 4), the array for it (2, 5)"));
    array other = of({2, 4}, dtype::float32);
    EXPECT_THAT(message_of<argument_type_error>([&] {
                    matmul(on, of({2, 3}), of({3, 4}), other);
                }),
                HasSubstr("the result's elements are float64"));
    EXPECT_THAT(message_of<argument_error>([&] {
                    matmul(on, of({2, 3}), of({3, 4}), of({1}).broadcast_to({2, 4}));
                }),
                HasSubstr("stand for many"));
}

TEST_F(MatmulErrors, ElementTypes) {
    for (const dtype type : {dtype::bool_, dtype::int8, dtype::int64, dtype::uint32}) {
        EXPECT_THAT(refused<argument_type_error>(of({2, 2}, type), of({2, 2})),
                    AllOf(HasSubstr("these are " + name_of(type)), HasSubstr("convert them with astype")));
    }
    EXPECT_THAT(refused<argument_type_error>(of({2, 2}), empty({2, 2}, dtype::float8_e4m3, on)),
                HasSubstr("these are float8_e4m3"));
    EXPECT_THROW(static_cast<void>(matmul(on, of({2, 2}, dtype::float16), of({2, 2}, dtype::bfloat16))),
                 argument_type_error);
    for (const matmul_epilog epilog : {matmul_epilog::relu, matmul_epilog::gelu}) {
        EXPECT_THAT(refused<argument_error>(of({2, 2}, dtype::complex64), of({2, 2}), {.epilog = epilog}),
                    HasSubstr("relu and gelu are for real elements, these are complex128"));
    }
}

TEST_F(MatmulErrors, WhatIsAddedAndFactors) {
    EXPECT_THAT(refused<argument_error>({.c = of({2, 4})}), HasSubstr("c is given without beta"));
    EXPECT_THAT(refused<argument_error>({.beta = 1}), HasSubstr("beta is given without c"));
    EXPECT_THAT(refused<argument_error>({.c = of({3, 4}), .beta = 1}),
                HasSubstr("c has shape (3, 4), and the result has shape (2, 4)"));
    EXPECT_THAT(refused<argument_error>({.c = of({1, 2, 4}), .beta = 1}), HasSubstr("c has shape (1, 2, 4)"));
    EXPECT_THAT(refused<argument_error>({.alpha = std::complex<double>(0, 1)}),
                AllOf(HasSubstr("alpha is"), HasSubstr("pass a real number, or complex operands")));
    EXPECT_THAT(refused<argument_error>({.c = of({2, 4}), .beta = std::complex<double>(0, 1)}), HasSubstr("beta is"));
    EXPECT_THAT(refused<argument_error>({.epilog = matmul_epilog::gelu_bias}),
                HasSubstr("the epilog adds a bias, and none is given"));
    EXPECT_THAT(refused<argument_error>({.epilog = matmul_epilog::relu, .bias = of({4})}),
                HasSubstr("a bias is given, and the epilog adds none"));
    EXPECT_THAT(refused<argument_error>({.epilog = matmul_epilog::bias, .bias = of({2})}),
                HasSubstr("the bias has shape (2,), and the result has shape (2, 4)"));
}

TEST_F(MatmulErrors, DevicesAndStreams) {
    const stream other(sim(0));
    EXPECT_THAT(refused<argument_error>(of({2, 2}), ones({2, 2}, dtype::float64, other)),
                AllOf(HasSubstr("one operand lies on cpu, another on sim:0"), HasSubstr("to(device)")));
    EXPECT_THAT(message_of<argument_error>([&] {
                    static_cast<void>(matmul(other, of({2, 2}), of({2, 2})));
                }),
                HasSubstr("pass a stream of cpu"));
    stream closed(cpu());
    closed.close();
    EXPECT_THROW(static_cast<void>(matmul(closed, of({2, 2}), of({2, 2}))), state_error);
}

/// One element stands for many: no machine has the memory.
TEST_F(MatmulErrors, MoreThanTheLibraryCounts) {
    constexpr std::int64_t many = std::int64_t{1} << 32;
    const array long_row = of({1, 1}).broadcast_to({1, many});
    EXPECT_THAT(refused<argument_error>(long_row, of({1, 1}).broadcast_to({many, 1})),
                AllOf(HasSubstr("a matrix has 4294967296 rows or columns"), HasSubstr("at most 2147483647"),
                      HasSubstr("multiply parts of it")));
}

// In a process of its own, since a library that was opened stays: the name is a death test's.
TEST(MatmulDeathTest, AMissingLibraryIsNamedWithWhatToInstall) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            ::setenv("WEIR_BLAS_LIBRARY", "/no/such/library.so", 1);
            const stream on(cpu());
            const array one = ones({2, 2}, dtype::float64, on);
            const std::string said = message_of<missing_library>([&] { static_cast<void>(matmul(on, one, one)); });
            std::fprintf(stderr, "%s\n", said.c_str());
            std::_Exit(3);
        },
        ::testing::ExitedWithCode(3),
        "cannot open /no/such/library.so, which WEIR_BLAS_LIBRARY names .*install the package libopenblas0");
}

TEST(MatmulDeathTest, ALibraryWithoutTheInterfaceIsNamed) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            ::setenv("WEIR_BLAS_LIBRARY", "libm.so.6", 1);
            const stream on(cpu());
            const array one = ones({2, 2}, dtype::float64, on);
            const std::string said = message_of<missing_library>([&] { static_cast<void>(matmul(on, one, one)); });
            std::fprintf(stderr, "%s\n", said.c_str());
            std::_Exit(3);
        },
        ::testing::ExitedWithCode(3), "libm.so.6 has no function cblas_sgemm");
}

}  // namespace
}  // namespace weir
