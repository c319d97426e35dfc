// Products on CUDA devices: how cuBLASLt is used, and what happens where it fails. What the products are, the conformance suite says
// for every device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "calls/matmul/cublaslt_library.hpp"
#include "runtime/lifetime/reaper.hpp"
#include "support/arrays.hpp"
#include "support/fake_cublaslt.hpp"
#include "support/fake_cuda.hpp"
#include "support/messages.hpp"
#include "weir/testing.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::fake_cublaslt;
using test::fake_cuda;
using test::message_of;
using test::values_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

class MatmulOnCuda : public ::testing::Test {
protected:
    void SetUp() override {
        if (!fake_cuda::in_use()) {
            GTEST_SKIP() << "the test tells the fake driver and the fake cuBLASLt what to do";
        }
        mistakes_ = fake_cublaslt::mistakes();
    }
    void TearDown() override {
        if (fake_cuda::in_use()) {
            cuda().synchronize();
            fake_cublaslt::set_workspace(0);
            fake_cublaslt::set_fastest(-1);
            EXPECT_EQ(fake_cublaslt::mistakes(), mistakes_);
        }
    }
    [[nodiscard]] array of(double value, const shape& extents, dtype type = dtype::float32) const {
        return full(extents, value, type, s1);
    }

    stream s1{cuda()};
    stream s2{cuda()};
    unsigned long long mistakes_ = 0;
};

std::vector<float> floats(std::size_t count, float value) { return std::vector<float>(count, value); }

TEST_F(MatmulOnCuda, ABatchIsOneCall) {
    const unsigned long long calls = fake_cublaslt::calls("cublasLtMatmul");
    EXPECT_EQ(values_of<float>(matmul(s1, of(1, {6, 3, 4}), of(2, {6, 4, 5}))), floats(90, 8));
    EXPECT_EQ(fake_cublaslt::calls("cublasLtMatmul"), calls + 1);
    const array other_order = of(1, {3, 6, 3, 4}).transpose({1, 0, 2, 3});
    EXPECT_EQ(values_of<float>(matmul(s1, other_order, of(2, {6, 1, 4, 5}))), floats(270, 8));
    EXPECT_LE(fake_cublaslt::calls("cublasLtMatmul"), calls + 4) << "one for each index of the smaller axis";
}

TEST_F(MatmulOnCuda, AnAlgorithmIsAskedForOnce) {
    const array a = of(1, {7, 9});
    const array b = of(2, {9, 11});
    static_cast<void>(matmul(s1, a, b));
    const unsigned long long asked = fake_cublaslt::calls("cublasLtMatmulAlgoGetHeuristic");
    static_cast<void>(matmul(s2, a, b));
    EXPECT_EQ(fake_cublaslt::calls("cublasLtMatmulAlgoGetHeuristic"), asked);
    static_cast<void>(matmul(s2, a, of(2, {9, 12})));
    EXPECT_EQ(fake_cublaslt::calls("cublasLtMatmulAlgoGetHeuristic"), asked + 1);
}

TEST_F(MatmulOnCuda, TheLibraryDoesTheEpilogsThatItHas) {
    const array a = of(1, {3, 4});
    const array b = of(1, {4, 5});
    const auto epilogue = [&](const matmul_options& how, const array& left, const array& right) {
        static_cast<void>(matmul(s1, left, right, how));
        return fake_cublaslt::last_epilogue();
    };
    EXPECT_EQ(epilogue({}, a, b), calls::cublaslt_epilogue_default);
    EXPECT_EQ(epilogue({.epilog = matmul_epilog::relu}, a, b), calls::cublaslt_epilogue_relu);
    EXPECT_EQ(epilogue({.epilog = matmul_epilog::gelu_bias, .bias = of(1, {5})}, a, b),
              calls::cublaslt_epilogue_gelu | calls::cublaslt_epilogue_bias);
    EXPECT_EQ(epilogue({.epilog = matmul_epilog::relu_bias, .bias = of(1, {5})}, of(1, {4}), b),
              calls::cublaslt_epilogue_relu | calls::cublaslt_epilogue_bias)
        << "a vector by a matrix";
    EXPECT_EQ(epilogue({.epilog = matmul_epilog::bias, .bias = of(1, {3, 1})}, a, b), calls::cublaslt_epilogue_default)
        << "one for each column of the transpose, which it does not have";
    EXPECT_EQ(epilogue({.epilog = matmul_epilog::bias, .bias = of(1, {10})[{slice{0, 10, 2}}]}, a, b),
              calls::cublaslt_epilogue_default)
        << "elements apart";
    const array complex = of(1, {4, 4}, dtype::complex64);
    EXPECT_EQ(epilogue({.epilog = matmul_epilog::bias, .bias = of(1, {4}, dtype::complex64)}, complex, complex),
              calls::cublaslt_epilogue_default)
        << "it has none for complex elements";
}

/// Its GELU of float64 is less accurate than its sums: E10.EpilogsOfEachType fails by it.
TEST_F(MatmulOnCuda, TheLibraryIsNotAskedForAnInaccurateEpilog) {
    const array a = of(1, {3, 4}, dtype::float64);
    const array b = of(1, {4, 5}, dtype::float64);
    const array bias = of(1, {5}, dtype::float64);
    const auto epilogue = [&](const matmul_options& how) {
        static_cast<void>(matmul(s1, a, b, how));
        return fake_cublaslt::last_epilogue();
    };
    EXPECT_EQ(epilogue({.epilog = matmul_epilog::relu_bias, .bias = bias}),
              calls::cublaslt_epilogue_relu | calls::cublaslt_epilogue_bias)
        << "it is asked for the others";
    EXPECT_EQ(epilogue({.epilog = matmul_epilog::gelu}), calls::cublaslt_epilogue_default);
    EXPECT_EQ(epilogue({.epilog = matmul_epilog::gelu_bias, .bias = bias}), calls::cublaslt_epilogue_default);
}

/// The fake counts a mistake for addresses that are less aligned than was said.
TEST_F(MatmulOnCuda, TheLibraryIsToldHowAddressesAreAligned) {
    const array a = of(1, {8, 9});
    array all = of(0, {8, 9});
    for (std::int64_t first = 0; first < 4; ++first) {
        const array part = a[{slice{}, slice{first, first + 5}}];
        array out = all[{slice{}, slice{first, first + 5}}];
        matmul(s1, part, of(1, {5, 5}), out);
        EXPECT_EQ(values_of<float>(copy(s1, out)), floats(40, 5));
        EXPECT_EQ(values_of<float>(matmul(s1, a.t(), part)), floats(45, 8));
        EXPECT_EQ(values_of<float>(
                      matmul(s1, of(1, {3, 8, 9})[{slice{}, slice{}, slice{first, first + 5}}], of(1, {3, 5, 2}))),
                  floats(48, 5));
    }
}

TEST_F(MatmulOnCuda, ProductsAreInTheDriversQueueWhenTheCallReturns) {
    const array a = of(1, {3, 3});
    cuda().synchronize();
    testing::gate held;
    held.hold(s1);
    array x = matmul(s1, a, a);
    array y = matmul(s2, x, a);
    EXPECT_FALSE(x.ready());
    EXPECT_FALSE(y.ready());
    held.open();
    EXPECT_EQ(values_of<float>(y), floats(9, 9));
}

TEST_F(MatmulOnCuda, EachProductHasItsWorkspaceAlone) {
    fake_cublaslt::set_workspace(4096);
    const array a = of(1, {5, 5});
    cuda().synchronize();
    std::vector<array> all;
    for (int i = 0; i < 8; ++i) {
        all.push_back(matmul(i % 2 == 0 ? s1 : s2, a, a));
    }
    matmul_plan p(a, a);
    p.plan(s1);
    EXPECT_EQ(p.workspace_bytes(), 4096U);
    for (int i = 0; i < 8; ++i) {
        all.push_back(p.execute(i % 2 == 0 ? s1 : s2));
    }
    for (const array& each : all) {
        EXPECT_EQ(values_of<float>(each), floats(25, 5));
    }
}

TEST_F(MatmulOnCuda, TheLibraryKeepsToTheMemoryLimit) {
    fake_cublaslt::set_workspace(4096);
    const array a = of(1, {6, 5});
    const array b = of(1, {5, 6});
    EXPECT_EQ(values_of<float>(matmul(s1, a, b, {.memory_limit = 4096})), floats(36, 5));
    EXPECT_THAT(message_of<out_of_memory>([&] { static_cast<void>(matmul(s1, a, b, {.memory_limit = 4095})); }),
                AllOf(HasSubstr("matmul needs 4096 bytes on cuda:0"), HasSubstr("its memory limit is 4095 bytes")));
    fake_cublaslt::set_workspace(std::size_t{64} << 20U);
    EXPECT_THAT(message_of<device_error>([&] {
                    static_cast<void>(matmul(s1, of(1, {6, 7}), of(1, {7, 6})));
                }),
                HasSubstr("cuBLASLt has no algorithm for matrices of float32 that lie so"));
}

TEST_F(MatmulOnCuda, TuningKeepsTheFastestForAllProductsOfTheKind) {
    fake_cublaslt::set_fastest(2);
    const array a = of(1, {13, 7});
    const array b = of(1, {7, 17});
    static_cast<void>(matmul(s1, a, b));
    EXPECT_EQ(fake_cublaslt::last_algorithm(), 0) << "the first that is suggested";
    matmul_plan p(a, b);
    p.plan(s1);
    EXPECT_EQ(p.autotune(s1, {.candidates = 8, .repetitions = 2}), 4) << "the fake suggests no more";
    EXPECT_EQ(values_of<float>(p.execute(s2)), floats(13 * 17, 7));
    EXPECT_EQ(fake_cublaslt::last_algorithm(), 2);
    static_cast<void>(matmul(s1, a, b));
    EXPECT_EQ(fake_cublaslt::last_algorithm(), 2);
    static_cast<void>(matmul(s1, b.t(), a.t()));
    EXPECT_EQ(fake_cublaslt::last_algorithm(), 0) << "control: another kind of product";
}

TEST_F(MatmulOnCuda, TuningThatFailsLeavesWhatThereWas) {
    const array a = of(1, {11, 7});
    matmul_plan p(a, of(1, {7, 19}));
    p.plan(s1);
    fake_cublaslt::fail("cublasLtMatmul", 3, 13);
    EXPECT_THROW(static_cast<void>(p.autotune(s1)), error);
    EXPECT_EQ(values_of<float>(p.execute(s1)), floats(11 * 19, 7));
}

TEST_F(MatmulOnCuda, NothingIsLeftBehind) {
    const array a = of(1, {3, 3});
    static_cast<void>(matmul(s1, a, a));
    cuda().synchronize();
    runtime::reaper::wait_until_empty();
    const std::size_t objects = fake_cublaslt::objects();
    {
        matmul_plan p(a, a);
        p.plan(s1);
        static_cast<void>(values_of<float>(p.execute(s1)));
        EXPECT_GT(fake_cublaslt::objects(), objects) << "what is prepared for the next execution";
    }
    cuda().synchronize();
    runtime::reaper::wait_until_empty();
    EXPECT_EQ(fake_cublaslt::objects(), objects);
}

TEST_F(MatmulOnCuda, ARepeatedProductDescribesNothing) {
    const array a = of(1, {3, 29});
    const array b = of(2, {29, 3});
    const auto described = [] {
        return fake_cublaslt::calls("cublasLtMatmulDescCreate") + fake_cublaslt::calls("cublasLtMatrixLayoutCreate");
    };
    array out = matmul(s1, a, b);
    const unsigned long long before = described();
    std::vector<array> alive;
    for (int i = 0; i < 5; ++i) {
        alive.push_back(matmul(i % 2 == 0 ? s1 : s2, of(1 + i, {3, 29}), b));
    }
    matmul(s2, of(2, {3, 29}), b, out);
    EXPECT_EQ(described(), before) << "other arrays that lie likewise";
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(values_of<float>(alive[static_cast<std::size_t>(i)]), floats(9, 58 * static_cast<float>(1 + i)));
    }
    EXPECT_EQ(values_of<float>(out), floats(9, 116));
    static_cast<void>(matmul(s1, of(1, {29, 3}).t(), b));
    EXPECT_GT(described(), before) << "control: one that lies otherwise";
}

TEST_F(MatmulOnCuda, WhatRepeatedProductsKeepIsBounded) {
    for (std::int64_t n = 1; n < 300; ++n) {
        static_cast<void>(matmul(s1, of(1, {1, n}), of(1, {n, 1})));
    }
    cuda().synchronize();
    runtime::reaper::wait_until_empty();
    const std::size_t objects = fake_cublaslt::objects();
    for (std::int64_t n = 300; n < 1300; ++n) {
        static_cast<void>(matmul(s1, of(1, {1, n}), of(1, {n, 1})));
    }
    cuda().synchronize();
    runtime::reaper::wait_until_empty();
    EXPECT_LE(fake_cublaslt::objects(), objects);
}

TEST_F(MatmulOnCuda, ARepeatedProductKeepsToItsOwnMemoryLimit) {
    fake_cublaslt::set_workspace(5000);
    const array a = of(1, {5, 31});
    const array b = of(1, {31, 5});
    static_cast<void>(matmul(s1, a, b, {.memory_limit = 10'000}));
    static_cast<void>(matmul(s1, a, b, {.memory_limit = 10'000}));
    EXPECT_THROW(static_cast<void>(matmul(s1, a, b, {.memory_limit = 4999})), out_of_memory);
    const std::size_t before = memory::stats(cuda()).limit;
    memory::limit(cuda(), 4000);
    EXPECT_THROW(static_cast<void>(matmul(s1, a, b, {.memory_limit = "100%"})), out_of_memory);
    memory::limit(cuda(), before);
    EXPECT_EQ(values_of<float>(matmul(s1, a, b, {.memory_limit = "100%"})), floats(25, 31));
    memory::limit(cuda(), 4000);
    EXPECT_THROW(static_cast<void>(matmul(s1, a, b, {.memory_limit = "100%"})), out_of_memory)
        << "what is prepared needs more than the part is now";
    memory::limit(cuda(), before);
}

TEST_F(MatmulOnCuda, WhatTheLibrarySaysIsPassedOn) {
    const array a = of(1, {3, 23});
    const array b = of(1, {23, 3});
    fake_cublaslt::fail("cublasLtMatmulAlgoGetHeuristic", 1, 14);
    EXPECT_THAT(message_of<device_error>([&] { static_cast<void>(matmul(s1, a, b)); }),
                AllOf(HasSubstr("cublasLtMatmulAlgoGetHeuristic failed"), HasSubstr("CUBLAS_STATUS_INTERNAL_ERROR"),
                      HasSubstr("CUBLASLT_LOG_LEVEL=5")));
    fake_cublaslt::fail("cublasLtMatmulDescCreate", 1, 3);
    EXPECT_THAT(message_of<out_of_memory>([&] { static_cast<void>(matmul(s1, a, b)); }),
                AllOf(HasSubstr("CUBLAS_STATUS_ALLOC_FAILED"), HasSubstr("call memory::trim")));
    fake_cublaslt::fail("cublasLtMatmul", 1, 13);
    EXPECT_THAT(message_of<error>([&] { static_cast<void>(values_of<float>(matmul(s1, a, b))); }),
                HasSubstr("CUBLAS_STATUS_EXECUTION_FAILED"));
    EXPECT_EQ(values_of<float>(matmul(s1, a, b)), floats(9, 23));
}

// In a process of its own, since a library that was opened stays: the name is a death test's.
TEST(MatmulOnCudaDeathTest, AMissingLibraryIsNamedWithWhatToInstall) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "the test names another library than the fake";
    }
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            ::setenv("WEIR_CUBLASLT_LIBRARY", "/no/such/library.so", 1);
            const stream on(cuda());
            const array one = ones({2, 2}, dtype::float64, on);
            const std::string said = message_of<missing_library>([&] { static_cast<void>(matmul(on, one, one)); });
            std::fprintf(stderr, "%s\n", said.c_str());
            std::_Exit(3);
        },
        ::testing::ExitedWithCode(3), "cannot open /no/such/library.so, which WEIR_CUBLASLT_LIBRARY names");
}

}  // namespace
}  // namespace weir
