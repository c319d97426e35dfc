// Scenarios E2 to E4 and rule P3 for products of matrices: what they wait for, on two streams, one of which is late.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "support/arrays.hpp"
#include "support/devices.hpp"
#include "support/matrices.hpp"
#include "support/versions.hpp"
#include "weir/buffer.hpp"
#include "weir/check.hpp"
#include "weir/launch.hpp"
#include "weir/linalg.hpp"
#include "weir/testing.hpp"

namespace weir {
namespace {

using test::expect_three_versions;
using test::here;
using test::scenario_run;
using test::values_of;
using numbers = std::vector<double>;

/// A matrix of equal elements, which all streams know.
array settled(double value, const shape& extents = {3, 3}) {
    array a = full(extents, value, dtype::float64, current_stream(here()));
    here().synchronize();
    return a;
}

WEIR_CONFORMANCE(E2, ProductsReturnBeforeTheWorkIsDone) {
    WEIR_NEEDS_BLAS();
    const stream s1(here());
    const stream s2(here());
    array a = settled(1.0);
    array b = settled(1.0);
    const array other = settled(2.0);
    testing::gate held;
    held.hold(s1);
    fill(s1, a, 2.0);
    array x = matmul(s1, a, b);
    array y = matmul(s2, x, b);  // uses the product at once, on another stream
    EXPECT_FALSE(x.ready());
    EXPECT_FALSE(y.ready());
    EXPECT_EQ(values_of<double>(matmul(stream(here()), other, b)), numbers(9, 6.0))
        << "control: what needs no ordering does not wait";
    a = {};
    held.open();
    EXPECT_EQ(values_of<double>(x), numbers(9, 6.0));
    EXPECT_EQ(values_of<double>(y), numbers(9, 18.0));
}

WEIR_CONFORMANCE(E2, TwoProductsThatReadOneMatrixDoNotWait) {
    WEIR_NEEDS_BLAS();
    const stream s1(here());
    const stream s2(here());
    const array a = settled(1.0);
    testing::gate held;
    held.hold(s1);
    array late = matmul(s1, a, a);
    EXPECT_EQ(values_of<double>(matmul(s2, a, a)), numbers(9, 3.0));
    EXPECT_FALSE(late.ready());
}

/// A scenario in which one operand is written late.
template <class Product>
void expect_reads(const numbers& right, const Product& product) {
    expect_three_versions(
        right, {{"make", "multiply"}}, __FILE__,
        [&](scenario_run& run) {
            array late = settled(1.0);
            array x = settled(0.0);
            run.hold(run.s1);
            fill(on(run.s1).label("make"), late, 2.0);
            run.by_hand(run.s2, run.s1);
            product(on(run.s2).label("multiply"), late, x);
            run.finish();
            return values_of<double>(x);
        },
        here());
}

WEIR_CONFORMANCE(E3, EachOperandMadeOnOneStreamMultipliedOnAnother) {
    WEIR_NEEDS_BLAS();
    const array one = settled(1.0);
    expect_reads(numbers(9, 6.0), [&](const on& where, const array& late, array& x) { matmul(where, late, one, x); });
    expect_reads(numbers(9, 6.0), [&](const on& where, const array& late, array& x) { matmul(where, one, late, x); });
    expect_reads(numbers(9, 5.0), [&](const on& where, const array& late, array& x) {
        matmul(where, one, one, x, {.c = late, .beta = 1});
    });
    expect_reads(numbers(9, 5.0), [&](const on& where, const array& late, array& x) {
        matmul(where, one, one, x, {.epilog = matmul_epilog::bias, .bias = late});
    });
}

WEIR_CONFORMANCE(E3, ProductMadeOnOneStreamReadOnAnother) {
    WEIR_NEEDS_BLAS();
    expect_three_versions(
        numbers(9, 6.0), {{"multiply", "read"}}, __FILE__,
        [](scenario_run& run) {
            const array a = settled(2.0);
            const array b = settled(1.0);
            array x = settled(0.0);
            array y = settled(0.0);
            run.hold(run.s1);
            matmul(on(run.s1).label("multiply"), a, b, x);
            run.by_hand(run.s2, run.s1);
            copy(on(run.s2).label("read"), y, x);
            run.finish();
            return values_of<double>(y);
        },
        here());
}

WEIR_CONFORMANCE(E3, AnOperandIsChangedAfterTheProductThatReadsIt) {
    WEIR_NEEDS_BLAS();
    expect_three_versions(
        numbers(9, 6.0), {{"multiply", "change"}}, __FILE__,
        [](scenario_run& run) {
            array a = settled(2.0);
            const array b = settled(1.0);
            array x = settled(0.0);
            run.hold(run.s1);
            matmul(on(run.s1).label("multiply"), a, b, x);
            run.by_hand(run.s2, run.s1);
            fill(on(run.s2).label("change"), a, 100.0);
            run.finish();
            return values_of<double>(x);
        },
        here());
}

/// A plan's workspace is memory that the program does not see.
WEIR_CONFORMANCE(P3, ExecutionsOnDifferentStreamsShareTheWorkspaceInEveryMode) {
    WEIR_NEEDS_BLAS();
    for (const ordering_mode mode : {ordering_mode::automatic, ordering_mode::manual}) {
        const check_scope check({.assume_manual = true});
        const ordering_scope ordering(mode);
        const stream s1(here());
        const stream s2(here());
        const stream s3(here());
        const array apart = settled(2.0, {6, 6})[{slice{0, 6, 2}, slice{0, 6, 2}}];  // goes by the workspace
        const array one = settled(1.0);
        array x = settled(0.0);
        array y = settled(0.0);
        array other = settled(0.0);
        matmul_plan p(apart, one);
        p.plan(s1);
        EXPECT_GE(p.workspace_bytes(), 9 * sizeof(double));
        testing::gate held;
        held.hold(s1);
        p.execute(s1, x);
        const completion second = p.execute(s2, y);
        fill(s3, other, 1.0).synchronize();  // control: another stream is not held back
        EXPECT_FALSE(second.done()) << "it would overwrite the workspace of the first";
        held.open();
        here().synchronize();
        EXPECT_EQ(values_of<double>(x), numbers(9, 6.0));
        EXPECT_EQ(values_of<double>(y), numbers(9, 6.0));
        EXPECT_TRUE(check.report().empty()) << check.report().to_string();
    }
}

WEIR_CONFORMANCE(P3, WithoutAWorkspaceExecutionsDoNotWaitForEachOther) {
    WEIR_NEEDS_BLAS();
    const stream s1(here());
    const stream s2(here());
    const array one = settled(1.0);
    array x = settled(0.0);
    array y = settled(0.0);
    matmul_plan p(one, one);
    p.plan(s1);
    const bool has_workspace = p.workspace_bytes() > 0;  // NVIDIA's library may want one
    testing::gate held;
    held.hold(s1);
    p.execute(s1, x);
    const completion second = p.execute(s2, y);
    if (!has_workspace) {
        second.synchronize();
    }
    EXPECT_FALSE(x.ready());
    EXPECT_EQ(has_workspace, !second.done());
    held.open();
    EXPECT_EQ(values_of<double>(y), numbers(9, 3.0));
}

WEIR_CONFORMANCE(E4, EarlierChangesAreSeenLaterOnesAreNot) {
    WEIR_NEEDS_BLAS();
    for (const ordering_mode mode : {ordering_mode::automatic, ordering_mode::manual}) {
        const ordering_scope ordering(mode);
        const stream s(here());
        array a = settled(1.0);
        array b = settled(1.0);
        array x = settled(0.0);
        testing::gate held;
        held.hold(s);
        matmul_plan p(a, b);
        p.plan(s);
        fill(s, a, 2.0);
        p.execute(s, x);
        fill(s, a, 100.0);
        held.open();
        s.synchronize();
        EXPECT_EQ(values_of<double>(x), numbers(9, 6.0));
    }
}

WEIR_CONFORMANCE(E3, TheCurrentStreamChangesBetweenExecutions) {
    WEIR_NEEDS_BLAS();
    const stream s1(here());
    const stream s2(here());
    const array one = settled(1.0);
    matmul_plan p(one, one);
    testing::gate held;
    held.hold(s1);
    array x;
    {
        const use current(s1);
        p.plan();
        x = p.execute();
    }
    array y;
    {
        const use current(s2);
        p.reset_operands({.b = x});
        y = p.execute();
    }
    EXPECT_FALSE(y.ready());
    held.open();
    EXPECT_EQ(values_of<double>(y), numbers(9, 9.0));
}

/// The result may be an import of the operand's memory: a buffer of its own, whose pending accesses are others.
WEIR_CONFORMANCE(E5, ProductsOverAnotherImportOfTheirOperandWaitForBoth) {
    WEIR_NEEDS_BLAS();
    const stream s1(here());
    const stream s2(here());
    array x = ones({4, 4}, dtype::float64, s1);
    here().synchronize();
    array other(buffer::wrap(x.device_data(), x.nbytes(), here(), x), dtype::float64, {4, 4});
    testing::gate held;
    held.hold(s1);
    fill(s1, x, 2);
    const completion done = matmul(s2, x, x, other);
    EXPECT_FALSE(done.done());
    held.open();
    done.synchronize();
    EXPECT_EQ(values_of<double>(other), std::vector<double>(16, 16.0));
}

}  // namespace
}  // namespace weir
