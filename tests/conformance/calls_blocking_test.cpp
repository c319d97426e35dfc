// Scenarios E5 and E8 and rule P2 for products of matrices and sparse systems: how often their calls wait, and which streams they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/arrays.hpp"
#include "support/call_listener.hpp"
#include "support/devices.hpp"
#include "support/matrices.hpp"
#include "support/messages.hpp"
#include "support/sparse_needs.hpp"
#include "support/sparse_systems.hpp"
#include "support/stuck_host.hpp"
#include "weir/error.hpp"
#include "weir/linalg.hpp"
#include "weir/sparse.hpp"
#include "weir/testing.hpp"

namespace weir {
namespace {

using test::are_near;
using test::here;
using test::make_array;
using test::message_of;
using test::stuck_host;
using test::values_of;
using test::waits_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using numbers = std::vector<double>;

/// Where a call computes, whether its options ask it to block, and how often the host waits in it.
struct mode {
    bool is_elsewhere;
    call_blocking blocking;
    int waits;
};
const std::vector<mode> modes = {{false, call_blocking::automatic, 0},
                                 {false, call_blocking::always, 1},
                                 {true, call_blocking::automatic, 1},
                                 {true, call_blocking::always, 1}};

std::string described(const mode& of) {
    return std::string(of.is_elsewhere ? "elsewhere" : "here") +
           (of.blocking == call_blocking::always ? ", always" : ", automatic");
}

device elsewhere() { return here() == cpu() ? sim(0) : cpu(); }

/// Options for the mode.
template <class Options>
Options options_for(const mode& of) {
    Options how;
    how.blocking = of.blocking;
    if (of.is_elsewhere) {
        how.execution = elsewhere();
    }
    return how;
}

/// A system of three equations whose solution is 1, 2, 3.
struct small_system {
    stream on{here()};
    csr_matrix a = make_csr(on, test::dense_matrix<double>{3, {2, 0, 0, 0, 4, 0, 0, 1, 8}});
    array b = make_array(on, {3}, numbers{2, 8, 26});
};

WEIR_CONFORMANCE(E5, TheHostWaitsInProductsAsOftenAsTheBlockingModeSays) {
    WEIR_NEEDS_BLAS();
    const stream s(here());
    const stream far(elsewhere());
    const array a = ones({3, 3}, dtype::float64, s);
    array x = zeros({3, 3}, dtype::float64, s);
    for (const mode& m : modes) {
        SCOPED_TRACE(described(m));
        const stream& on = m.is_elsewhere ? far : s;
        const auto how = options_for<matmul_options>(m);
        EXPECT_EQ(waits_of([&] { static_cast<void>(matmul(on, a, a, how)); }), m.waits);
        EXPECT_EQ(waits_of([&] { static_cast<void>(matmul(a, a, how)); }), m.waits);
        EXPECT_EQ(waits_of([&] { matmul(on, a, a, x, how); }), m.waits);
        matmul_plan p(a, a, how);
        EXPECT_EQ(waits_of([&] { p.plan(on); }), 0);
        EXPECT_EQ(waits_of([&] { static_cast<void>(p.execute(on)); }), m.waits);
        EXPECT_EQ(waits_of([&] { p.execute(on, x); }), m.waits);
        EXPECT_EQ(waits_of([&] {
                      p.reset_operands({.a = x});
                      p.release_operands();
                      p.free();
                  }),
                  0);
    }
}

WEIR_CONFORMANCE(E5, TheHostWaitsInSparsePhasesAsOftenAsTheBlockingModeSays) {
    WEIR_NEEDS_SOLVER();
    const small_system of;
    const stream far(elsewhere());
    array x = zeros({3}, dtype::float64, of.on);
    for (const mode& m : modes) {
        SCOPED_TRACE(described(m));
        const stream& on = m.is_elsewhere ? far : of.on;
        const auto how = options_for<solve_options>(m);
        EXPECT_EQ(waits_of([&] { static_cast<void>(solve(on, of.a, of.b, how)); }), m.waits) << "three phases";
        EXPECT_EQ(waits_of([&] { static_cast<void>(solve(of.a, of.b, how)); }), m.waits);
        EXPECT_EQ(waits_of([&] { solve(on, of.a, of.b, x, how); }), m.waits);
        direct_solver s(of.a, of.b, how);
        EXPECT_EQ(waits_of([&] { s.plan(on); }), m.waits);
        EXPECT_EQ(waits_of([&] { s.factorize(on); }), m.waits);
        EXPECT_EQ(waits_of([&] { s.solve(on, x); }), m.waits);
        EXPECT_EQ(waits_of([&] {
                      s.reset_operands(x);
                      s.reset_operands(of.a, of.b);
                      s.release_operands();
                      s.free();
                  }),
                  0);
        EXPECT_THAT(values_of<double>(x), are_near({1, 2, 3}));
    }
}

WEIR_CONFORMANCE(E5, CallsThatBlockReturnAfterTheWork) {
    WEIR_NEEDS_BLAS();
    WEIR_NEEDS_SOLVER();
    const small_system of;
    const array a = ones({3, 3}, dtype::float64, of.on);
    of.on.synchronize();
    {
        testing::gate held;
        held.hold(of.on);
        const stuck_host waits([&] { held.open(); });
        const array x = matmul(of.on, a, a, {.blocking = call_blocking::always});
        EXPECT_TRUE(waits.was_stuck());
        EXPECT_TRUE(x.ready());
    }
    testing::gate held;
    held.hold(of.on);
    const stuck_host waits([&] { held.open(); });
    const array x = solve(of.on, of.a, of.b, {.blocking = call_blocking::always});
    EXPECT_TRUE(waits.was_stuck());
    EXPECT_TRUE(x.ready());
}

WEIR_CONFORMANCE(E8, StreamsOfOtherDevicesAreRefusedWithWhatToPass) {
    WEIR_NEEDS_BLAS();
    WEIR_NEEDS_SOLVER();
    const small_system of;
    const array a = ones({3, 3}, dtype::float64, of.on);
    const device other = elsewhere();
    const stream far(other, {0, "far"});
    const std::string wanted = "pass a stream of " + here().name();
    const auto is_named = AllOf(HasSubstr("the stream \"far\" is one of " + other.name()), HasSubstr(wanted));
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(matmul(far, a, a)); }), is_named);
    matmul_plan p(a, a);
    EXPECT_THAT(message_of<argument_error>([&] { p.plan(far); }), is_named);
    p.plan(of.on);
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(p.execute(far)); }), is_named);
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(solve(far, of.a, of.b)); }), is_named);
    direct_solver s(of.a, of.b);
    EXPECT_THAT(message_of<argument_error>([&] { s.plan(far); }), is_named);
    s.plan(of.on);
    EXPECT_THAT(message_of<argument_error>([&] { s.factorize(far); }), is_named);
    s.factorize(of.on);
    EXPECT_THAT(message_of<argument_error>([&] { static_cast<void>(s.solve(far)); }), is_named);
    EXPECT_THAT(values_of<double>(s.solve(of.on)), are_near({1, 2, 3})) << "after all of that";
}

/// The workspace goes back to the pool, in order, with work pending.
WEIR_CONFORMANCE(E7, AProductGivesItsWorkspaceBackEarly) {
    WEIR_NEEDS_BLAS();
    const stream s(here());
    const stream other(here());
    const array apart = ones({6, 6}, dtype::float64, s)[{slice{0, 6, 2}, slice{0, 6, 2}}];  // goes by the workspace
    here().synchronize();
    testing::gate held;
    held.hold(s);
    matmul_plan p(apart, apart);
    p.plan(s);
    ASSERT_GT(p.workspace_bytes(), 0U);
    const array x = p.execute(s, {.release_workspace = true});
    EXPECT_EQ(p.workspace_bytes(), 0U);
    array reused = full({9}, 7.0, dtype::float64, other);  // possibly that memory
    EXPECT_FALSE(x.ready());
    const array y = p.execute(other);
    EXPECT_GT(p.workspace_bytes(), 0U) << "the next execution takes a new one";
    held.open();
    EXPECT_EQ(values_of<double>(x), numbers(9, 3.0));
    EXPECT_EQ(values_of<double>(y), numbers(9, 3.0));
    EXPECT_EQ(values_of<double>(reused), numbers(9, 7.0));
}

}  // namespace
}  // namespace weir
