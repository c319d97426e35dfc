// Scenarios E6 and E9 for the stateful form of products: the states of a plan, new operands, and what may be let go of when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/arrays.hpp"
#include "support/devices.hpp"
#include "support/matrices.hpp"
#include "support/messages.hpp"
#include "weir/error.hpp"
#include "weir/linalg.hpp"
#include "weir/testing.hpp"

namespace weir {
namespace {

using test::here;
using test::message_of;
using test::values_of;
using ::testing::HasSubstr;
using numbers = std::vector<double>;

array constant(const stream& on, double value, const shape& extents = {2, 2}) {
    return full(extents, value, dtype::float64, on);
}

WEIR_CONFORMANCE(E6, PlansOfProductsAreReleasedAndFreed) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    matmul_plan p(constant(on, 1), constant(on, 2), {.c = constant(on, 3), .beta = 1});
    EXPECT_THAT(message_of<state_error>([&] { static_cast<void>(p.execute(on)); }),
                HasSubstr("call plan before execute"));
    EXPECT_THAT(message_of<state_error>([&] { static_cast<void>(p.autotune(on)); }), HasSubstr("call plan before"));
    p.plan(on);
    EXPECT_EQ(values_of<double>(p.execute(on)), numbers(4, 7.0));
    p.release_operands();
    p.release_operands();
    EXPECT_THAT(message_of<state_error>([&] { static_cast<void>(p.execute(on)); }),
                HasSubstr("the operands were released; call reset_operands"));
    EXPECT_THAT(message_of<state_error>([&] { p.reset_operands({.a = constant(on, 1)}); }),
                HasSubstr("give reset_operands all of them"));
    p.reset_operands({.a = constant(on, 2), .b = constant(on, 2), .c = constant(on, 1)});
    EXPECT_EQ(values_of<double>(p.execute(on)), numbers(4, 9.0)) << "the plan stays";
    matmul_plan moved = std::move(p);
    EXPECT_EQ(values_of<double>(moved.execute()), numbers(4, 9.0));
    moved.free();
    moved.free();
    for (matmul_plan* const each : {&p, &moved}) {
        EXPECT_THAT(message_of<state_error>([&] { each->plan(on); }), HasSubstr("it was freed; make a new one"));
        EXPECT_THROW(each->plan(), state_error);
        EXPECT_THROW(static_cast<void>(each->execute(on)), state_error);
        EXPECT_THROW(static_cast<void>(each->execute()), state_error);
        EXPECT_THROW(static_cast<void>(each->autotune(on)), state_error);
        EXPECT_THROW(each->reset_operands({.a = constant(on, 1)}), state_error);
        EXPECT_THROW(each->release_operands(), state_error);
        EXPECT_EQ(each->workspace_bytes(), 0U);
    }
}

WEIR_CONFORMANCE(E9, OperandsAndFactorsAreReplacedOneByOne) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    matmul_plan p(constant(on, 1), constant(on, 1),
                  {.c = constant(on, 1), .beta = 1, .epilog = matmul_epilog::bias, .bias = constant(on, 1, {2})});
    p.plan(on);
    EXPECT_EQ(values_of<double>(p.execute(on)), numbers(4, 4.0));
    p.reset_operands({.a = constant(on, 3)});
    EXPECT_EQ(values_of<double>(p.execute(on)), numbers(4, 8.0));
    p.reset_operands({.b = constant(on, 2)});
    EXPECT_EQ(values_of<double>(p.execute(on)), numbers(4, 14.0));
    p.reset_operands({.c = constant(on, 5)});
    EXPECT_EQ(values_of<double>(p.execute(on)), numbers(4, 18.0));
    p.reset_operands({.bias = constant(on, 2, {2})});
    EXPECT_EQ(values_of<double>(p.execute(on)), numbers(4, 19.0));
    p.reset_operands({.alpha = 2});
    EXPECT_EQ(values_of<double>(p.execute(on)), numbers(4, 31.0));
    p.reset_operands({.beta = 0});
    EXPECT_EQ(values_of<double>(p.execute(on)), numbers(4, 26.0));
    p.reset_operands({.beta = 2});
    EXPECT_EQ(values_of<double>(p.execute(on)), numbers(4, 36.0));
}

WEIR_CONFORMANCE(E9, OperandsThatDoNotFitThePlanAreRefusedAndAllStays) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    matmul_plan p(constant(on, 1), constant(on, 1));
    p.plan(on);
    EXPECT_THROW(p.reset_operands({.a = constant(on, 1, {3, 2})}), argument_error);
    EXPECT_THROW(p.reset_operands({.a = full({2, 2}, 1, dtype::float32, on)}), argument_error);
    EXPECT_THAT(message_of<argument_error>([&] { p.reset_operands({.c = constant(on, 1)}); }),
                HasSubstr("the plan is for a product without c"));
    EXPECT_THAT(message_of<argument_error>([&] { p.reset_operands({.bias = constant(on, 1)}); }),
                HasSubstr("the plan is for a product without a bias"));
    EXPECT_THROW(p.reset_operands({.beta = 1}), argument_error);
    EXPECT_THROW(p.reset_operands({.alpha = std::complex<double>(0, 1)}), argument_error);
    EXPECT_EQ(values_of<double>(p.execute(on)), numbers(4, 2.0));
}

/// Everything may go while the product waits.
WEIR_CONFORMANCE(E6, OperandsPlanAndWorkspaceGoBeforeTheWorkIsDone) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    array x = constant(on, 0);
    here().synchronize();
    testing::gate held;
    held.hold(on);
    {
        array wide = constant(on, 3, {4, 4});
        matmul_plan p(wide[{slice{0, 4, 2}, slice{0, 4, 2}}], constant(on, 1));
        p.plan(on);
        p.execute(on, x);
        wide = {};
        p.release_operands();
        p.free();
    }
    const stream other(here());
    array reused = constant(other, 100.0, {4, 4});
    other.synchronize();
    held.open();
    EXPECT_EQ(values_of<double>(x), numbers(4, 6.0));
}

WEIR_CONFORMANCE(P1, TuningKeepsWhatIsComputed) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    array c = constant(on, 5);
    array out = constant(on, 7);
    matmul_plan p(constant(on, 1), constant(on, 2), {.c = c, .beta = 1});
    p.plan(on);
    EXPECT_GE(p.autotune(on, {.candidates = 3, .repetitions = 2}), 0);
    EXPECT_THROW(static_cast<void>(p.autotune(on, {.candidates = 0})), argument_error);
    EXPECT_THROW(static_cast<void>(p.autotune(on, {.repetitions = 0})), argument_error);
    EXPECT_EQ(values_of<double>(c), numbers(4, 5.0));
    EXPECT_EQ(values_of<double>(out), numbers(4, 7.0));
    EXPECT_EQ(values_of<double>(p.execute(on)), numbers(4, 9.0));
}

/// The library's functions, and what is remembered of them, are used by several threads at once.
WEIR_CONFORMANCE(P1, ThreadsMultiplyBesideEachOther) {
    WEIR_NEEDS_BLAS();
    constexpr int threads = 4;
    std::array<std::string, threads> wrong;
    std::vector<std::thread> all;
    for (std::string& said : wrong) {
        all.emplace_back([&said] {
            const stream on(here());
            for (std::int64_t n = 1; n <= 12; ++n) {
                const array a = full({n, 5}, 2.0, dtype::float64, on);
                const array b = full({5, n + 1}, 3.0, dtype::float64, on);
                matmul_plan p(a, b);
                p.plan(on);
                if (values_of<double>(p.execute(on)) != numbers(static_cast<std::size_t>(n * (n + 1)), 30.0)) {
                    said += " " + std::to_string(n);
                }
            }
        });
    }
    for (std::thread& each : all) {
        each.join();
    }
    for (const std::string& said : wrong) {
        EXPECT_EQ(said, "");
    }
}

/// A factor that could not be made makes the product fail (rule K4), and no other.
WEIR_CONFORMANCE(K4, AProductOfWhatFailedFails) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    array a = constant(on, 1);
    const array b = constant(on, 1);
    host_task(
        weir::on(on).label("broken"), [](auto&&...) { throw std::runtime_error("no such number"); },
        out(a.view<double>()));
    array x = matmul(on, a, b);
    EXPECT_THAT(message_of<operation_error>([&] { static_cast<void>(values_of<double>(x)); }),
                HasSubstr("no such number"));
    EXPECT_EQ(values_of<double>(matmul(stream(here()), b, b)), numbers(4, 2.0));
}

WEIR_CONFORMANCE(P1, AMemoryLimitIsKept) {
    WEIR_NEEDS_BLAS();
    const stream on(here());
    const array apart = constant(on, 1, {64, 64})[{slice{0, 64, 2}, slice{0, 64, 2}}];
    EXPECT_THAT(message_of<out_of_memory>([&] { static_cast<void>(matmul(on, apart, apart, {.memory_limit = 1000})); }),
                HasSubstr("its memory limit is 1000 bytes"));
    EXPECT_EQ(values_of<double>(matmul(on, apart, apart))[0], 32.0);
}

}  // namespace
}  // namespace weir
