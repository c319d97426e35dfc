// Scenarios E2 to E4 and rule P3 for sparse systems: which phases need which ordering, on two streams, one of which is late.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "support/arrays.hpp"
#include "support/devices.hpp"
#include "support/sparse_needs.hpp"
#include "support/sparse_systems.hpp"
#include "support/versions.hpp"
#include "weir/sparse.hpp"

namespace weir {
namespace {

using test::expect_three_versions;
using test::here;
using test::make_array;
using test::scenario_run;
using test::values_of;
using numbers = std::vector<double>;

constexpr std::int64_t size = 6;

array settled(double value) {
    array a = full({size}, value, dtype::float64, current_stream(here()));
    here().synchronize();
    return a;
}

/// A diagonal matrix of equal elements, which all streams may use.
csr_matrix diagonal(double value) {
    const stream on(here());
    test::csr_elements<double> of;
    for (std::int32_t i = 0; i < size; ++i) {
        of.columns.push_back(i);
        of.values.push_back(value);
        of.offsets.push_back(i + 1);
    }
    csr_matrix made = make_csr(on, of);
    here().synchronize();
    return made;
}

/// A solver that is analyzed, which all streams may use.
direct_solver planned(const csr_matrix& a, const array& b) {
    direct_solver s(a, b);
    s.plan(stream(here()));
    here().synchronize();
    return s;
}

WEIR_CONFORMANCE(E2, SparsePhasesReturnBeforeTheWorkIsDone) {
    WEIR_NEEDS_SOLVER();
    const stream s1(here());
    const stream s2(here());
    csr_matrix a = diagonal(1.0);
    array b = settled(8.0);
    const csr_matrix other = diagonal(4.0);
    testing::gate held;
    held.hold(s1);
    fill(s1, a.values, 2.0);
    array x = solve(s1, a, b);
    array y = solve(s2, a, x);  // uses the solution at once, on another stream
    EXPECT_FALSE(x.ready());
    EXPECT_FALSE(y.ready());
    EXPECT_EQ(values_of<double>(solve(stream(here()), other, b)), numbers(size, 2.0))
        << "control: what needs no ordering does not wait";
    a = {};
    b = {};
    held.open();
    EXPECT_EQ(values_of<double>(x), numbers(size, 4.0));
    EXPECT_EQ(values_of<double>(y), numbers(size, 2.0));
}

WEIR_CONFORMANCE(E3, ValuesMadeOnOneStreamFactorizedOnAnother) {
    WEIR_NEEDS_SOLVER();
    expect_three_versions(
        numbers(size, 4.0), {{"make", "factorize"}}, __FILE__,
        [](scenario_run& run) {
            csr_matrix a = diagonal(1.0);
            array b = settled(8.0);
            array x = settled(0.0);
            direct_solver s = planned(a, b);
            run.hold(run.s1);
            fill(on(run.s1).label("make"), a.values, 2.0);
            run.by_hand(run.s2, run.s1);
            s.factorize(on(run.s2).label("factorize"));
            s.solve(on(run.s2).label("solve"), x);
            s.free();
            run.finish();
            return values_of<double>(x);
        },
        here());
}

WEIR_CONFORMANCE(E3, RightHandSideMadeOnOneStreamSolvedForOnAnother) {
    WEIR_NEEDS_SOLVER();
    expect_three_versions(
        numbers(size, 3.0), {{"make", "solve"}}, __FILE__,
        [](scenario_run& run) {
            array b = settled(8.0);
            array x = settled(0.0);
            direct_solver s = planned(diagonal(2.0), b);
            s.factorize(run.s2);
            here().synchronize();
            run.hold(run.s1);
            fill(on(run.s1).label("make"), b, 6.0);
            run.by_hand(run.s2, run.s1);
            s.solve(on(run.s2).label("solve"), x);
            run.finish();
            return values_of<double>(x);
        },
        here());
}

WEIR_CONFORMANCE(E3, SolvedOnOneStreamReadOnAnother) {
    WEIR_NEEDS_SOLVER();
    expect_three_versions(
        numbers(size, 4.0), {{"solve", "read"}}, __FILE__,
        [](scenario_run& run) {
            array x = settled(0.0);
            array y = settled(0.0);
            direct_solver s = planned(diagonal(2.0), settled(8.0));
            s.factorize(run.s1);
            here().synchronize();
            run.hold(run.s1);
            s.solve(on(run.s1).label("solve"), x);
            run.by_hand(run.s2, run.s1);
            copy(on(run.s2).label("read"), y, x);
            run.finish();
            return values_of<double>(y);
        },
        here());
}

/// The phases depend on each other through memory that the program does not see.
WEIR_CONFORMANCE(P3, PhasesOnDifferentStreamsAreOrderedInEveryMode) {
    WEIR_NEEDS_SOLVER();
    for (const ordering_mode mode : {ordering_mode::automatic, ordering_mode::manual}) {
        const check_scope check({.assume_manual = true});
        const ordering_scope ordering(mode);
        const stream s1(here());
        const stream s2(here());
        const stream s3(here());
        const csr_matrix a = diagonal(2.0);
        array b = settled(8.0);
        array x = settled(0.0);
        array other = settled(0.0);
        direct_solver s(a, b);
        testing::gate held;
        held.hold(s1);
        s.plan(s1);
        s.factorize(s2);
        const completion end = s.solve(s3, x);
        fill(stream(here()), other, 1.0).synchronize();
        EXPECT_FALSE(end.done()) << "it would use a factorization that is not there";
        held.open();
        end.synchronize();
        EXPECT_EQ(values_of<double>(x), numbers(size, 4.0));
        here().synchronize();
        EXPECT_TRUE(check.report().empty()) << "the program does not see the factorization\n"
                                            << check.report().to_string();
    }
}

/// A factorization with other values waits for the solutions that use the one before.
WEIR_CONFORMANCE(P3, ANewFactorizationWaitsForSolutionsThatArePending) {
    WEIR_NEEDS_SOLVER();
    for (const ordering_mode mode : {ordering_mode::automatic, ordering_mode::manual}) {
        const ordering_scope ordering(mode);
        const stream s1(here());
        const stream s2(here());
        csr_matrix a = diagonal(2.0);
        array x = settled(0.0);
        array other = settled(0.0);
        direct_solver s = planned(a, settled(8.0));
        s.factorize(s1);
        here().synchronize();
        fill(s2, a.values, 4.0);
        here().synchronize();
        testing::gate held;
        held.hold(s1);
        s.solve(s1, x);
        const completion again = s.factorize(s2);
        fill(stream(here()), other, 1.0).synchronize();  // control: another stream is not delayed
        EXPECT_FALSE(again.done());
        held.open();
        here().synchronize();
        EXPECT_EQ(values_of<double>(x), numbers(size, 4.0)) << "the solution is the one of the first factorization";
        s.solve(s2, x);
        here().synchronize();
        EXPECT_EQ(values_of<double>(x), numbers(size, 2.0));
    }
}

WEIR_CONFORMANCE(E4, EarlierChangesAreSeenLaterOnesAreNot) {
    WEIR_NEEDS_SOLVER();
    for (const ordering_mode mode : {ordering_mode::automatic, ordering_mode::manual}) {
        const ordering_scope ordering(mode);
        const stream s(here());
        csr_matrix a = diagonal(1.0);
        array b = settled(0.0);
        array x = settled(0.0);
        testing::gate held;
        held.hold(s);
        direct_solver by(a, b);
        by.plan(s);
        fill(s, a.values, 2.0);
        by.factorize(s);
        fill(s, a.values, 100.0);
        fill(s, b, 8.0);
        by.solve(s, x);
        fill(s, b, 100.0);
        held.open();
        s.synchronize();
        EXPECT_EQ(values_of<double>(x), numbers(size, 4.0));
    }
}

/// The structure may change as soon as the analysis is enqueued: the analysis has read it before.
WEIR_CONFORMANCE(E4, IndicesMayChangeAfterTheAnalysis) {
    WEIR_NEEDS_SOLVER();
    const stream s(here());
    csr_matrix a = diagonal(2.0);
    direct_solver by(a, settled(8.0));
    testing::gate held;
    held.hold(s);
    by.plan(s);
    fill(s, a.column_indices, -1);
    fill(s, a.row_offsets, -1);
    by.factorize(s);
    array x = by.solve(s);
    held.open();
    EXPECT_EQ(values_of<double>(x), numbers(size, 4.0));
}

WEIR_CONFORMANCE(E3, TheCurrentStreamChangesBetweenPhases) {
    WEIR_NEEDS_SOLVER();
    const stream s1(here());
    const stream s2(here());
    direct_solver by(diagonal(2.0), settled(8.0));
    testing::gate held;
    held.hold(s1);
    {
        const use current(s1);
        by.plan();
        by.factorize();
    }
    array x;
    {
        const use current(s2);
        x = by.solve();
    }
    EXPECT_FALSE(x.ready());
    held.open();
    EXPECT_EQ(values_of<double>(x), numbers(size, 4.0));
}

}  // namespace
}  // namespace weir
