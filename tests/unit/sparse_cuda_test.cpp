// Sparse systems on CUDA devices: how cuDSS is used, and what happens if it fails. The conformance suite checks the solutions on every
// device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <dlfcn.h>

#include <chrono>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "calls/sparse/cudss_library.hpp"
#include "support/arrays.hpp"
#include "support/fake_cuda.hpp"
#include "support/fake_cudss.hpp"
#include "support/messages.hpp"
#include "support/sparse_systems.hpp"
#include "weir/testing.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::fake_cuda;
using test::fake_cudss;
using test::message_of;
using test::residual;
using test::right_hand_side;
using test::sparse_matrix;
using test::values_of;
using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using numbers = std::vector<double>;

constexpr std::int64_t size = 10;
constexpr int analysis = static_cast<int>(calls::cudss_phase::analysis);
constexpr int factorization = static_cast<int>(calls::cudss_phase::factorization);
constexpr int solution = static_cast<int>(calls::cudss_phase::solve);

class SparseOnCuda : public ::testing::Test {
protected:
    void SetUp() override {
        if (!fake_cuda::in_use()) {
            GTEST_SKIP() << "the test tells the fake driver and the fake cuDSS what to do";
        }
        mistakes_ = fake_cudss::mistakes();
    }
    void TearDown() override {
        if (fake_cuda::in_use()) {
            cuda().synchronize();
            EXPECT_EQ(fake_cudss::mistakes(), mistakes_);
        }
    }

    [[nodiscard]] double residual_of(const array& x) const { return residual(elements, values_of<double>(x), right); }

    stream s1{cuda()};
    stream s2{cuda()};
    test::dense_matrix<double> elements = sparse_matrix<double>(matrix_kind::general, size);
    numbers right = right_hand_side<double>(size);
    csr_matrix a = make_csr(s1, elements);
    array b = test::make_array(s1, {size}, right);
    unsigned long long mistakes_ = 0;
};

TEST_F(SparseOnCuda, EachPhaseIsOneOfTheLibrarys) {
    const unsigned long long analyses = fake_cudss::phases(analysis);
    const unsigned long long factorizations = fake_cudss::phases(factorization);
    const unsigned long long solutions = fake_cudss::phases(solution);
    direct_solver s(a, b);
    s.plan(s1);
    s.factorize(s1);
    EXPECT_LT(residual_of(s.solve(s1)), 1.0);
    s.factorize(s2);
    EXPECT_LT(residual_of(s.solve(s2)), 1.0);
    EXPECT_EQ(fake_cudss::phases(analysis), analyses + 1);
    EXPECT_EQ(fake_cudss::phases(factorization), factorizations + 2);
    EXPECT_EQ(fake_cudss::phases(solution), solutions + 2);
}

TEST_F(SparseOnCuda, SolutionsOfOneFactorizationComeOneAfterTheOther) {
    direct_solver s(a, b);
    s.plan(s1);
    s.factorize(s1);
    cuda().synchronize();
    testing::gate held;
    held.hold(s1);
    array x = s.solve(s1);
    array y = s.solve(s2);  // after the first: the library's data has one workspace
    EXPECT_FALSE(x.ready());
    EXPECT_FALSE(y.ready());
    held.open();
    EXPECT_LT(residual_of(x), 1.0);
    EXPECT_LT(residual_of(y), 1.0);
}

TEST_F(SparseOnCuda, NothingIsLeftBehind) {
    const std::size_t objects = fake_cudss::objects();
    {
        testing::gate held;
        held.hold(s1);
        direct_solver s(a, b);
        s.plan(s1);
        s.factorize(s1);
        array x = s.solve(s1);
        s.free();
        EXPECT_GT(fake_cudss::objects(), objects) << "what is pending refers to them";
        held.open();
        EXPECT_LT(residual_of(x), 1.0);
    }
    cuda().synchronize();
    // A thread of Weir's releases what is complete, a little later.
    const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (fake_cudss::objects() > objects && std::chrono::steady_clock::now() < latest) {
        std::this_thread::yield();
    }
    EXPECT_EQ(fake_cudss::objects(), objects);
}

TEST_F(SparseOnCuda, WhatTheLibrarySaysIsPassedOn) {
    // The retry after the pool has given memory back fails, too.
    fake_cudss::fail("cudssExecute", 1, calls::cudss_alloc_failed);
    fake_cudss::fail("cudssExecute", 1, calls::cudss_alloc_failed);  // once the first has been
    array x = solve(s1, a, b);
    EXPECT_THAT(
        message_of<operation_error>([&] { static_cast<void>(values_of<double>(x)); }),
        AllOf(HasSubstr("sparse analysis"), HasSubstr("CUDSS_STATUS_ALLOC_FAILED"), HasSubstr("call memory::trim")));
    fake_cudss::fail("cudssExecute", 1, calls::cudss_alloc_failed);
    EXPECT_LT(residual_of(solve(s1, a, b)), 1.0) << "the second try has the memory";
    fake_cudss::fail("cudssExecute", 2, 4);
    x = solve(s1, a, b);
    EXPECT_THAT(message_of<operation_error>([&] { static_cast<void>(values_of<double>(x)); }),
                AllOf(HasSubstr("sparse factorization"), HasSubstr("CUDSS_STATUS_NOT_SUPPORTED"),
                      HasSubstr("compute with execution cpu")));
    fake_cudss::fail("cudssCreate", 1, 6);
    EXPECT_THAT(message_of<device_error>([&] { static_cast<void>(solve(s1, a, b)); }), HasSubstr("CUDSS_LOG_LEVEL=5"));
    EXPECT_LT(residual_of(solve(s1, a, b)), 1.0);
}

/// The library replaces such pivots, and reports success.
TEST_F(SparseOnCuda, ASingularMatrixSaysHowManyPivotsAreNearlyZero) {
    const array known = ones({2}, dtype::float64, s1);
    const auto said_of = [&](std::vector<double> numbers_of, matrix_kind kind) {
        const test::dense_matrix<double> of{2, std::move(numbers_of)};
        const array x = solve(s1, make_csr<double, std::int64_t>(s1, of), known, {.kind = kind});
        return message_of<operation_error>([&] { static_cast<void>(values_of<double>(x)); });
    };
    EXPECT_THAT(said_of({1, 2, 2, 4}, matrix_kind::general), HasSubstr("is singular (cuDSS: 1 pivot was nearly 0)"));
    EXPECT_THAT(said_of({1, 2, 2, 4 + 1e-15}, matrix_kind::symmetric),
                AllOf(HasSubstr("the matrix is singular, or"), HasSubstr("(1 pivot was nearly 0)"),
                      HasSubstr("name it general")));
    EXPECT_THAT(said_of({1e-20, 0, 0, 1e-20}, matrix_kind::positive_definite),
                AllOf(HasSubstr("not positive definite"), HasSubstr("2 pivots were nearly 0")));
}

/// All four places are stored, so that only the values decide where the diagonal has zeros.
test::csr_elements<double> two_by_two(std::vector<double> values) {
    return {{0, 2, 4}, {0, 1, 0, 1}, std::move(values)};
}

TEST_F(SparseOnCuda, RowsAreMatchedAgainForValuesThatNeedAnotherOrder) {
    const array known = test::make_array(s1, {2}, numbers{3, 8});
    csr_matrix given = make_csr(s1, two_by_two({1, 0, 0, 1}));
    direct_solver s(given, known);
    s.plan(s1);
    s.factorize(s1);
    EXPECT_THAT(values_of<double>(s.solve(s1)), ElementsAre(3, 8));
    const unsigned long long analyses = fake_cudss::phases(analysis);
    given.values = test::make_array(s1, {4}, numbers{0, 2, 4, 0});
    s.reset_operands(given);
    s.factorize(s1);
    EXPECT_THAT(values_of<double>(s.solve(s1)), ElementsAre(2, 1.5));
    EXPECT_EQ(fake_cudss::phases(analysis), analyses + 1);
    given.values = test::make_array(s1, {4}, numbers{0, 1, 1, 0});
    s.reset_operands(given);
    s.factorize(s1);
    EXPECT_THAT(values_of<double>(s.solve(s1)), ElementsAre(8, 3));
    EXPECT_EQ(fake_cudss::phases(analysis), analyses + 1) << "the order of the rows fits";
}

TEST_F(SparseOnCuda, RowsAreMatchedOnceThereAreValues) {
    const array known = test::make_array(s1, {2}, numbers{3, 8});
    csr_matrix given = make_csr(s1, two_by_two({0, -0.0, 0, 0}));
    direct_solver s(given, known);
    s.plan(s1);
    const completion singular = s.factorize(s1);
    EXPECT_THAT(message_of<operation_error>([&] { singular.synchronize(); }), HasSubstr("all its elements are 0"));
    given.values = test::make_array(s1, {4}, numbers{0, 2, 4, 0});
    s.reset_operands(given);
    s.factorize(s1);
    EXPECT_THAT(values_of<double>(s.solve(s1)), ElementsAre(2, 1.5));
}

TEST_F(SparseOnCuda, SmallElementsAreNoReasonForAnError) {
    test::dense_matrix<double> small{2, {2e-20, 1e-20, 1e-20, 3e-20}};
    array known = full({2}, 5e-20, dtype::float64, s1);
    EXPECT_THAT(values_of<double>(solve(s1, make_csr(s1, small), known)),
                ElementsAre(DoubleNear(2.0, 1e-12), DoubleNear(1.0, 1e-12)));
}

TEST_F(SparseOnCuda, FewerElementsThanRows) {
    test::csr_elements<double> of{{0, 1, 1}, {0}, {1.0}};
    array x = solve(s1, make_csr(s1, of), ones({2}, dtype::float64, s1));
    EXPECT_THAT(message_of<operation_error>([&] { static_cast<void>(values_of<double>(x)); }),
                HasSubstr("2 rows have 1 elements"));
}

// In a process of its own, since a library that was opened stays: the name is a death test's.
TEST(SparseOnCudaDeathTest, AMissingLibraryIsNamedWithWhatToInstall) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "the test names another library than the fake";
    }
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            ::setenv("WEIR_CUDSS_LIBRARY", "/no/such/library.so", 1);
            const stream on(cuda());
            const std::string said = message_of<missing_library>([&] {
                static_cast<void>(
                    solve(on, make_csr(on, test::dense_matrix<double>{1, {1.0}}), ones({1}, dtype::float64, on)));
            });
            std::fprintf(stderr, "%s\n", said.c_str());
            std::_Exit(3);
        },
        ::testing::ExitedWithCode(3), "cannot open /no/such/library.so, which WEIR_CUDSS_LIBRARY names");
}

unsigned long long calls_of_cusolver(const char* name) {
    static void* const fake = ::dlopen(std::getenv("WEIR_CUSOLVER_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<unsigned long long (*)(const char*)>(::dlsym(fake, "weir_fake_cusolver_calls"))(name);
}

template <class T, class Index>
int wrong_solutions_of(matrix_kind kind, matrix_triangle which) {
    const stream on(cuda());
    const test::dense_matrix<T> a = sparse_matrix<T>(kind, size);
    const std::vector<T> b = right_hand_side<T>(size, 3);
    csr_matrix given = test::make_csr<T, Index>(on, a, which);
    direct_solver solver(given, test::make_array(on, {size, 3}, b), {.kind = kind, .triangle = which});
    solver.plan(on);
    if (explain(solver).to_string().find("since there is no cuDSS, a host task") == std::string::npos) {
        return 1;
    }
    solver.factorize(on);
    fill(on, given.values, 0);  // the values at the factorization count
    int wrong = residual(a, values_of<T>(solver.solve(on)), b) < 1.0 ? 0 : 1;
    test::dense_matrix<T> twice = a;
    for (T& each : twice.elements) {
        each *= T(2);
    }
    solver.reset_operands(test::make_csr<T, Index>(on, twice, which), test::make_array(on, {size, 3}, b));
    solver.factorize(on);
    return wrong + (residual(twice, values_of<T>(solver.solve(on)), b) < 1.0 ? 0 : 1);
}

template <class T>
int wrong_solutions_of() {
    int wrong = wrong_solutions_of<T, std::int32_t>(matrix_kind::general, matrix_triangle::full) +
                wrong_solutions_of<T, std::int64_t>(matrix_kind::general, matrix_triangle::full);
    for (const matrix_kind kind : {matrix_kind::symmetric, matrix_kind::hermitian, matrix_kind::positive_definite}) {
        for (const matrix_triangle which : {matrix_triangle::full, matrix_triangle::lower, matrix_triangle::upper}) {
            wrong += wrong_solutions_of<T, std::int32_t>(kind, which);
        }
    }
    return wrong;
}

/// In a process where cuSOLVER is used. Prints what is wrong, and how often the library was called.
int wrong_solutions_of_cusolver() {
    int wrong = wrong_solutions_of<float>() + wrong_solutions_of<double>() + wrong_solutions_of<std::complex<float>>() +
                wrong_solutions_of<std::complex<double>>();
    const stream on(cuda());
    const array one = ones({2}, dtype::float64, on);
    const auto expect_error = [&](const csr_matrix& a, matrix_kind kind, const char* text) {
        array x = solve(on, a, one, {.kind = kind});
        const std::string said = message_of<operation_error>([&] { static_cast<void>(values_of<double>(x)); });
        if (said.find(text) == std::string::npos) {
            std::fprintf(stderr, "not \"%s\", but \"%s\"\n", text, said.c_str());
            ++wrong;
        }
    };
    expect_error(make_csr(on, test::dense_matrix<double>{2, {1, 2, 2, 4}}), matrix_kind::general,
                 "singular (cuSOLVER: row 1)");
    expect_error(make_csr(on, test::dense_matrix<double>{2, {1, 2, 2, 1}}), matrix_kind::positive_definite,
                 "not positive definite (cuSOLVER: row 1)");
    expect_error(make_csr(on, test::csr_elements<double>{{0, 1, 1}, {0}, {1.0}}), matrix_kind::general,
                 "2 rows have 1 elements");
    expect_error(make_csr(on, test::csr_elements<double>{{0, 2, 3}, {1, 0, 1}, {1.0, 1.0, 1.0}}), matrix_kind::general,
                 "must increase within a row");
    cuda().synchronize();
    std::fprintf(stderr, "wrong %d, qr %llu, cholesky %llu\n", wrong, calls_of_cusolver("cusolverSpZcsrlsvqr"),
                 calls_of_cusolver("cusolverSpZcsrlsvchol"));
    return wrong;
}

/// Systems of each kind and triangle, with int32 and int64 indices, several right-hand sides, other values, and errors: by cuSOLVER. In
/// a process of its own, which prints how often the library was called.
TEST(SparseOnCudaDeathTest, WithoutCuDSSCuSOLVERSolves) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "the test names the fake cuSOLVER";
    }
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            ::setenv("WEIR_CUDSS_LIBRARY", "none", 1);
            std::_Exit(wrong_solutions_of_cusolver() == 0 ? 6 : 1);
        },
        ::testing::ExitedWithCode(6), "qr [1-9][0-9]*, cholesky [1-9]");
}

TEST(SparseOnCudaDeathTest, WithoutBothTheMessageNamesCuSOLVER) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "the test names another library than the fake";
    }
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            ::setenv("WEIR_CUDSS_LIBRARY", "none", 1);
            ::setenv("WEIR_CUSOLVER_LIBRARY", "/no/such/library.so", 1);
            const stream on(cuda());
            const std::string said = message_of<missing_library>([&] {
                static_cast<void>(
                    solve(on, make_csr(on, test::dense_matrix<double>{1, {1.0}}), ones({1}, dtype::float64, on)));
            });
            std::fprintf(stderr, "%s\n", said.c_str());
            std::_Exit(3);
        },
        ::testing::ExitedWithCode(3), "cannot open /no/such/library.so, which WEIR_CUSOLVER_LIBRARY names");
}

TEST(SparseOnCudaDeathTest, TheInterfaceOf07) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "the test names another library than the fake";
    }
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            ::setenv("WEIR_CUDSS_LIBRARY", WEIR_FAKE_OLD_CUDSS_FILE, 1);
            const stream on(cuda());
            const test::dense_matrix<double> a = sparse_matrix<double>(matrix_kind::general, size);
            const numbers b = right_hand_side<double>(size);
            array x = solve(on, make_csr(on, a), test::make_array(on, {size}, b));
            const bool good = residual(a, values_of<double>(x), b) < 1.0;
            const std::string told = message_of<operation_error>([&] {
                const array y = solve(on, make_csr(on, a), test::make_array(on, {size}, b), {.memory_limit = 100});
                static_cast<void>(values_of<double>(y));
            });
            const bool keeps_limits = told.find("the memory limit is 100 bytes") != std::string::npos;
            std::fprintf(stderr, "version %d.%d\n", calls::cudss().major, calls::cudss().minor);
            std::_Exit(good && keeps_limits ? 5 : 1);
        },
        ::testing::ExitedWithCode(5), "version 0.7");
}

}  // namespace
}  // namespace weir
