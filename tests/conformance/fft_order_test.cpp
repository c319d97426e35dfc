// Scenarios E2, E3 and E4 for transforms on the device where their operands lie: which calls need which ordering.
#include <gtest/gtest.h>

#include "support/arrays.hpp"
#include "support/devices.hpp"
#include "support/versions.hpp"
#include "weir/fft.hpp"

namespace weir {
namespace {

using test::here;

using test::expect_three_versions;
using test::scenario_run;
using test::values_of;
using complex = std::complex<double>;
using numbers = std::vector<complex>;

constexpr std::int64_t n = 8;
const numbers ones(n, 1.0);

/// The transform of n times the same number.
numbers transform_of(complex value) {
    numbers result(n);
    result[0] = static_cast<double>(n) * value;
    return result;
}

/// An array that all streams may use, since the host has waited for it.
array settled(device where, complex value) {
    array a = full(n, value, dtype::complex128, current_stream(where));
    where.synchronize();
    return a;
}
array settled(const scenario_run& run, complex value) { return settled(run.s1.device(), value); }

/// Adds `value` to each element, on the stream.
void add(const on& where, array& a, double value) {
    parallel_for(
        where, n, [value](std::size_t i, auto x) { x[i] += value; }, inout(a.view<complex>()));
}

WEIR_CONFORMANCE(E2, ReturnsBeforeTheWorkIsDone) {
    const stream s1(here());
    const stream s2(here());
    array a = settled(here(), 1.0);
    testing::gate held;
    held.hold(s1);
    array b = fft::fft(s1, a);
    array c = fft::ifft(s2, b);  // uses the result at once, on another stream
    array d = fft::rfft(s2, full(n, 3.0, dtype::float64, s2));
    EXPECT_FALSE(b.ready());
    EXPECT_FALSE(c.ready());
    held.open();
    EXPECT_EQ(values_of<complex>(c), ones);
    EXPECT_EQ(values_of<complex>(b), transform_of(1.0));
    EXPECT_EQ(values_of<complex>(d)[0], complex(24));
}

WEIR_CONFORMANCE(E2, IndependentWorkDoesNotWait) {
    const stream s1(here());
    const stream s2(here());
    array a = settled(here(), 1.0);
    testing::gate held;
    held.hold(s1);
    array late = fft::fft(s1, a);
    EXPECT_EQ(values_of<complex>(fft::fft(s2, a)), transform_of(1.0)) << "two readers are not ordered";
    EXPECT_FALSE(late.ready());
}

WEIR_CONFORMANCE(E3, ForwardOnOneStreamInverseOnAnother) {
    expect_three_versions(
        ones, {{"fft", "ifft"}}, __FILE__,
        [](scenario_run& run) {
            array a = settled(run, 1.0);
            array b = settled(run, 0.0);
            array c = settled(run, 0.0);
            run.hold(run.s1);
            fft::fft(run.s1, a, b);
            run.by_hand(run.s2, run.s1);
            fft::ifft(run.s2, b, c);
            run.finish();
            return values_of<complex>(c);
        },
        here());
}

WEIR_CONFORMANCE(E3, MadeOnOneStreamChangedAndTransformedOnAnotherAndDropped) {
    expect_three_versions(
        transform_of(2.0),
        {{"make", "change"}, {"make", "fft"}, {"change", "a", "use-after-free"}, {"fft", "a", "use-after-free"}},
        __FILE__,
        [](scenario_run& run) {
            array a = full(n, 0.0, dtype::complex128, run.s1, run.note("a"));
            array result = settled(run, 0.0);
            run.hold(run.s1);
            fill(on(run.s1).label("make"), a, 1.0);
            run.by_hand(run.s2, run.s1);
            add(on(run.s2).label("change"), a, 1.0);
            fft::fft(run.s2, a, result);
            run.by_hand(run.s1, run.s2);  // needed in pools of others: fft_lifetime_test shows what happens without
            a = {};
            run.finish();
            return values_of<complex>(result);
        },
        here());
}

WEIR_CONFORMANCE(E3, StatefulExecutedOnOneStreamResetAndExecutedOnAnother) {
    expect_three_versions(
        transform_of(8.0), {{"first", "make"}}, __FILE__,
        [](scenario_run& run) {
            array a = settled(run, 8.0);
            array spectrum = settled(run, 0.0);
            array c = settled(run, 0.0);
            array result = settled(run, 0.0);
            run.hold(run.s1);
            fft_plan f(a, {.norm = fft_norm::forward});
            f.plan(run.s1);
            f.execute(on(run.s1).label("first"), fft_direction::forward, spectrum);  // 8, 0, 0, ...
            run.by_hand(run.s2, run.s1);
            // The new operand: every element is the first element of the spectrum.
            parallel_for(
                on(run.s2).label("make"), n, [](std::size_t i, auto from, auto to) { to[i] = from[0] * double{n}; },
                in(spectrum.view<complex>()), out(c.view<complex>()));
            f.reset_operand(c);
            f.execute(on(run.s2).label("second"), fft_direction::forward, result);
            f.free();
            run.finish();
            return values_of<complex>(result);
        },
        here());
}

WEIR_CONFORMANCE(E3, TheCurrentStreamChangesBetweenPlanAndExecute) {
    expect_three_versions(
        transform_of(5.0), {{"make", "fft"}}, __FILE__,
        [](scenario_run& run) {
            array a = settled(run, 0.0);
            fft_plan f(a);
            {
                const use current(run.s1);
                run.hold(run.s1);
                fill(on(current_stream(run.s1.device())).label("make"), a, 5.0);
                f.plan();
            }
            run.by_hand(run.s2, run.s1);
            array result;
            {
                const use current(run.s2);
                result = f.execute();
            }
            run.finish();
            return values_of<complex>(result);
        },
        here());
}

WEIR_CONFORMANCE(E4, AnEarlierChangeOnTheSameStreamIsSeenALaterOneIsNot) {
    for (const ordering_mode mode : {ordering_mode::automatic, ordering_mode::manual}) {
        const ordering_scope ordering(mode);
        const stream s(here());
        array a = settled(here(), 0.0);
        array result = settled(here(), 0.0);
        testing::gate held;
        held.hold(s);
        fft_plan f(a);
        f.plan(s);
        add(s, a, 1.0);
        f.execute(s, fft_direction::forward, result);
        add(s, a, 10.0);
        held.open();
        s.synchronize();
        EXPECT_EQ(values_of<complex>(result), transform_of(1.0));
    }
}

/// Changes on s1 before and after a transform on s2, with one of the streams late.
numbers change_transform_change(scenario_run& run, stream scenario_run::*late) {
    array a = settled(run, 0.0);
    array result = settled(run, 0.0);
    fft_plan f(a);
    f.plan(run.s2);
    run.hold(run.*late);
    add(on(run.s1).label("before"), a, 1.0);
    run.by_hand(run.s2, run.s1);
    f.execute(run.s2, fft_direction::forward, result);
    run.by_hand(run.s1, run.s2);
    add(on(run.s1).label("after"), a, 10.0);
    run.finish();
    return values_of<complex>(result);
}

WEIR_CONFORMANCE(E4, ChangesOnAnotherStreamThatComesLate) {
    expect_three_versions(
        transform_of(1.0), {{"before", "fft"}, {"fft", "after"}}, __FILE__,
        [](scenario_run& run) { return change_transform_change(run, &scenario_run::s1); }, here());
}

WEIR_CONFORMANCE(E4, ChangesOnAnotherStreamThatHurries) {
    expect_three_versions(
        transform_of(1.0), {{"before", "fft"}, {"fft", "after"}}, __FILE__,
        [](scenario_run& run) { return change_transform_change(run, &scenario_run::s2); }, here());
}

/// A real result of a spectrum that is padded with zeros needs a workspace, which the plan keeps.
fft_plan with_workspace(const array& a, const stream& on) {
    fft_plan f(a, {.n = 4 * n}, fft_kind::complex_to_real);
    f.plan(on);
    EXPECT_GT(f.workspace_bytes(), 0U);
    return f;
}

WEIR_CONFORMANCE(P3, ExecutionsOfOnePlanShareItsWorkspace) {
    for (const ordering_mode mode : {ordering_mode::automatic, ordering_mode::manual}) {
        const check_scope check({.assume_manual = true});
        const ordering_scope ordering(mode);
        const stream s1(here());
        const stream s2(here());
        fft_plan f = with_workspace(settled(here(), 1.0), s1);
        array first = f.execute(s1, fft_direction::inverse);
        array second = f.execute(s2, fft_direction::inverse);
        here().synchronize();
        EXPECT_EQ(values_of<double>(first), values_of<double>(second));
        EXPECT_TRUE(check.report().empty()) << "the program does not see the workspace\n" << check.report().to_string();
    }
}

WEIR_CONFORMANCE(O5, AWorkspaceIsOrderedInEveryMode) {
    for (const ordering_mode mode : {ordering_mode::automatic, ordering_mode::manual}) {
        const ordering_scope ordering(mode);
        const stream s1(here());
        const stream s2(here());
        fft_plan f = with_workspace(settled(here(), 1.0), s1);
        array own_first = full(4 * n, 0.0, dtype::float64, s1);
        array own_second = full(4 * n, 0.0, dtype::float64, s2);
        array other = settled(here(), 0.0);
        here().synchronize();
        testing::gate held;
        held.hold(s1);
        f.execute(s1, fft_direction::inverse, own_first);
        const completion second = f.execute(s2, fft_direction::inverse, own_second);
        // Control: without the workspace nothing delays s2.
        fill(stream(here()), other, 1.0).synchronize();
        EXPECT_FALSE(second.done()) << "it would use the workspace beside the execution on s1";
        held.open();
        second.synchronize();
    }
}

}  // namespace
}  // namespace weir
