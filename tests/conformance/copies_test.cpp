// Scenario C3: copies between the host's memory and a device's go through the stream in use, and their calls do not wait.
#include <gtest/gtest.h>

#include <vector>

#include "support/arrays.hpp"
#include "support/devices.hpp"
#include "support/versions.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::expect_three_versions;
using test::here;
using test::scenario_run;
using test::values_of;
using testing::gate;

constexpr std::int64_t count = 64;
using numbers = std::vector<double>;

/// An array that all streams may use, since the host has waited for it.
array settled(const device& where, double value) {
    array made = full(count, value, dtype::float64, current_stream(where));
    where.synchronize();
    return made;
}

/// to = from * 10
completion times_ten(const on& where, array& to, const array& from) {
    return parallel_for(
        where, count, [](auto i, auto y, auto x) { y[i] = x[i] * 10; }, out(to.view<double>()),
        in(from.view<double>()));
}

WEIR_CONFORMANCE(C3, ACopyToTheDeviceGoesThroughItsStream) {
    expect_three_versions(
        numbers(count, 10), {{"copy", "use"}}, __FILE__,
        [](scenario_run& run) {
            array source = settled(cpu(), 1);
            array x = settled(run.device, 0);
            array y = settled(run.device, 0);
            run.hold(run.s1);
            copy(run.at(run.s1, "copy"), x, source);
            run.by_hand(run.s2, run.s1);
            run.finish({times_ten(run.at(run.s2, "use"), y, x)});
            return values_of<double>(y);
        },
        here());
}

WEIR_CONFORMANCE(C3, ACopyFromTheDeviceGoesThroughItsStream) {
    expect_three_versions(
        numbers(count, 10), {{"make", "copy"}}, __FILE__,
        [](scenario_run& run) {
            array target = settled(cpu(), 0);
            array x = settled(run.device, 1);
            array y = settled(run.device, 0);
            run.hold(run.s1);
            times_ten(run.at(run.s1, "make"), y, x);
            run.by_hand(run.s2, run.s1);
            run.finish({copy(run.at(run.s2, "copy"), target, y)});
            return values_of<double>(target);
        },
        here());
}

WEIR_CONFORMANCE(C3, TheCallReturnsBeforeTheCopyAndOtherStreamsGoOn) {
    const stream late(here());
    const stream in_time(here());
    array source = settled(cpu(), 1);
    array target = settled(cpu(), 0);
    array x = settled(here(), 0);
    array y = settled(here(), 0);
    gate held;
    held.hold(late);
    const completion there = copy(late, x, source);
    const completion back = copy(late, target, x);
    EXPECT_FALSE(there.done());
    EXPECT_FALSE(back.done());
    copy(in_time, y, source).synchronize();  // control: on a stream that is not held it runs
    EXPECT_EQ(values_of<double>(y), numbers(count, 1));
    EXPECT_FALSE(back.done());
    held.open();
    EXPECT_EQ(values_of<double>(target), numbers(count, 1));
}

WEIR_CONFORMANCE(C3, WithoutAStreamItIsTheCurrentOneOfTheDevice) {
    const stream current(here());
    array source = settled(cpu(), 1);
    gate held;
    held.hold(current);
    const use scope(current);
    array x = empty(count, dtype::float64, current_stream(here()));
    const completion copied = copy(current_stream(here()), x, source);
    EXPECT_FALSE(copied.done());
    held.open();
    EXPECT_EQ(values_of<double>(x), numbers(count, 1));
}

WEIR_CONFORMANCE(C3, BytesOfTheHostAreTakenAsTheyAreAtTheCall) {
    const stream s(here());
    array x = settled(here(), 0);
    gate held;
    held.hold(s);
    numbers bytes(count, 1);
    copy_from_host(s, x, std::as_bytes(std::span(bytes)));
    bytes.assign(count, 7);
    held.open();
    EXPECT_EQ(values_of<double>(x), numbers(count, 1));

    // Control: a copy that reads the bytes when it runs.
    gate held_again;
    held_again.hold(s);
    bytes.assign(count, 1);
    parallel_for(
        s, count, [&bytes](std::size_t i, auto to) { to[i] = bytes[i]; }, out(x.view<double>()));
    bytes.assign(count, 7);
    held_again.open();
    EXPECT_EQ(values_of<double>(x), numbers(count, 7));
}

}  // namespace
}  // namespace weir
