// What explain() says of plans: which library does each phase, and which phases block.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "support/arrays.hpp"
#include "support/devices.hpp"
#include "support/messages.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::here;
using test::message_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

bool is_on_a_gpu() { return here().kind() == device_kind::cuda; }
const char* place() { return is_on_a_gpu() ? "in the driver's queue" : "on the thread that runs the stream"; }

csr_matrix unit_matrix(const stream& on) {
    return {
        arange(0, 3, 1, dtype::int32, on), arange(0, 2, 1, dtype::int32, on), ones({2}, dtype::float64, on), {2, 2}};
}

WEIR_CONFORMANCE(V2, ExplainSaysWhichLibraryTransforms) {
    const stream on(here());
    fft_plan f(ones({2, 8}, dtype::complex64, on));
    const explanation said = explain(f);
    const char* const library = is_on_a_gpu() ? "cuFFT (" : "FFTW (";
    EXPECT_THAT(said.subject, AllOf(HasSubstr("fft_plan of complex64 (2, 8)"), HasSubstr(here().name())));
    EXPECT_THAT(said.phases, ElementsAre(AllOf(HasSubstr("plan: "), HasSubstr(library), HasSubstr("does not block")),
                                         AllOf(HasSubstr("execute: "), HasSubstr(library), HasSubstr(place()),
                                               HasSubstr("does not block"))));
    EXPECT_THAT(said.to_string(), HasSubstr("\n  phases:\n    plan: "));
    f.free();
    EXPECT_THAT(message_of<state_error>([&] { static_cast<void>(explain(f)); }), HasSubstr("it was freed"));
}

WEIR_CONFORMANCE(V2, ExplainSaysThatACallBlocks) {
    const stream on(here());
    const array a = ones({2, 2}, dtype::float64, on);
    EXPECT_THAT(explain(matmul_plan(a, a)).phases[1], AllOf(HasSubstr(place()), HasSubstr("does not block")));
    EXPECT_THAT(explain(matmul_plan(a, a, {.blocking = call_blocking::always})).phases,
                ElementsAre(HasSubstr("the call does not block"), HasSubstr("the call blocks: its options")));
    if (here().kind() != device_kind::sim) {
        EXPECT_THAT(explain(matmul_plan(a, a, {.execution = device_kind::sim})).phases[1],
                    AllOf(HasSubstr("the call blocks, since it computes on sim:0"), HasSubstr("on " + here().name())));
    }
}

WEIR_CONFORMANCE(V2, ExplainSaysWhichPhasesOfASparseSystemAreHostTasks) {
    const stream on(here());
    direct_solver solver(unit_matrix(on), ones({2}, dtype::float64, on));
    EXPECT_THAT(explain(solver).phases, ElementsAre(HasSubstr("not planned")));
    solver.plan(on);
    if (is_on_a_gpu() && explain(solver).phases[0].find("cuSOLVER") != std::string::npos) {
        GTEST_SKIP() << "cuDSS is not installed: the test of sparse systems by cuSOLVER has its phases";
    }
    const auto task = is_on_a_gpu() ? HasSubstr("a host task") : HasSubstr("on the thread that runs the stream");
    EXPECT_THAT(explain(solver).phases,
                ElementsAre(AllOf(HasSubstr("plan: "), HasSubstr(is_on_a_gpu() ? "cuDSS (" : "Eigen "), task),
                            AllOf(HasSubstr("factorize: "), task), AllOf(HasSubstr("solve: "), task)));
}

}  // namespace
}  // namespace weir
