// Section C of the scenarios: streams and events as a program uses them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/devices.hpp"
#include "support/time_limit.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::here;
using ::testing::ElementsAre;
using testing::gate;
using ::testing::HasSubstr;

/// A device that is not the one under test.
device elsewhere() { return here() == cpu() ? sim(0) : cpu(); }

WEIR_CONFORMANCE(C1, AStreamThatIsClosedTwiceSaysSoAndRefusesEveryUse) {
    stream s(here(), {.priority = 0, .name = "once"});
    EXPECT_TRUE(s);
    EXPECT_EQ(s.device(), here());
    EXPECT_THAT(s.to_string(), HasSubstr("once"));
    EXPECT_THAT(s.to_string(), HasSubstr(here().name()));
    EXPECT_EQ(s.to_string().find("closed"), std::string::npos);
    array x = zeros(4, dtype::float64, s);
    EXPECT_NO_THROW(fill(s, x, 1)) << "control: an open one takes work";
    s.close();
    s.close();
    EXPECT_FALSE(s);
    EXPECT_THAT(s.to_string(), HasSubstr("closed"));
    EXPECT_THROW(fill(s, x, 2), state_error);
    EXPECT_THROW(static_cast<void>(empty(4, dtype::float64, s)), state_error);
    EXPECT_THROW(s.wait(event(completion())), state_error);
    EXPECT_THROW(static_cast<void>(s.record()), state_error);
    EXPECT_THROW(static_cast<void>(s.record({.timing = true})), state_error);
    EXPECT_THROW(static_cast<void>(use{s}), state_error);
    const stream open(here());
    EXPECT_THROW(open.wait(s), state_error);
    s.synchronize();
    EXPECT_TRUE(s.done());
    EXPECT_EQ(x.read<double>()[3], 1) << "what it had before it was closed has run";
}

TEST(C1, ADeviceWithoutQueuesHasTheSameStreams) {
    stream s(cpu_inline(), {0, "at once"});
    EXPECT_TRUE(s);
    EXPECT_THAT(s.to_string(), HasSubstr("cpu:inline"));
    array x = zeros(4, dtype::float64, s);
    EXPECT_TRUE(fill(s, x, 1).done());
    EXPECT_TRUE(s.record().done());
    s.close();
    EXPECT_FALSE(s);
    EXPECT_THROW(fill(s, x, 2), state_error);
}

/// Two kernels that wait for each other while they run.
class meeting {
public:
    /// Whether the other one came.
    bool attend() {
        ++there_;
        while (there_ < 2 && !is_given_up_) {
            std::this_thread::yield();
        }
        return there_ == 2;
    }
    /// Blocks until one is there, which then waits no longer.
    void give_up_once_there() {
        while (there_ == 0) {
            std::this_thread::yield();
        }
        is_given_up_ = true;
    }

private:
    std::atomic<int> there_{0};
    std::atomic<bool> is_given_up_{false};
};

WEIR_CONFORMANCE(C2, KernelsOfTwoStreamsMeet) {
    meeting both;
    const stream a(here());
    const stream b(here());
    std::atomic<int> met{0};
    for (const stream& s : {a, b}) {
        parallel_for(s, 1, [&](std::size_t) { met += both.attend() ? 1 : 0; });
    }
    a.synchronize();
    b.synchronize();
    EXPECT_EQ(met, 2);
}

WEIR_CONFORMANCE(C2, ControlKernelsOfOneStreamDoNotMeet) {
    meeting both;
    const stream s(here());
    std::vector<bool> met;
    for (int i = 0; i < 2; ++i) {
        parallel_for(s, 1, [&](std::size_t) { met.push_back(both.attend()); });
    }
    std::thread impatient([&] { both.give_up_once_there(); });
    s.synchronize();
    impatient.join();
    EXPECT_FALSE(met[0]) << "the second one came after the first had gone";
}

WEIR_CONFORMANCE(C2, AnEventOrdersTwoStreamsAndTheHost) {
    const ordering_scope manual(ordering_mode::manual);
    for (const bool waits : {true, false}) {
        const stream a(here());
        const stream b(here());
        array x = zeros(4, dtype::float64, a);
        array y = zeros(4, dtype::float64, b);
        a.synchronize();
        b.synchronize();
        gate held;
        held.hold(a);
        fill(a, x, 1);
        const event filled = a.record();
        EXPECT_FALSE(filled.done());
        if (waits) {
            b.wait(filled);
        }
        const completion copied = copy(b, y, x);
        if (!waits) {
            copied.synchronize();
        }
        held.open();
        filled.wait();
        EXPECT_TRUE(filled.done());
        EXPECT_EQ(x.read<double>()[0], 1) << "the host has waited";
        b.synchronize();
        EXPECT_EQ(y.read<double>()[0], waits ? 1 : 0) << "0 is the control";
    }
}

WEIR_CONFORMANCE(C2, WithoutAStreamTheCurrentOneIsTaken) {
    const stream a(here());
    array x = full(4, 1, dtype::float64, a);
    a.synchronize();
    gate held;
    held.hold(current_stream(here()));
    array late = x + x;
    array in_time = copy(a, x);
    EXPECT_EQ(in_time.read<double>()[0], 1);
    EXPECT_FALSE(late.ready()) << "on the default stream, which is held";
    {
        const use current(a);
        EXPECT_EQ((x + x).read<double>()[0], 2) << "on this one, which is not";
    }
    held.open();
    EXPECT_EQ(late.read<double>()[0], 2);
}

WEIR_CONFORMANCE(C4, TheSameKernelOnTwoStreamsHasArgumentsOfItsOwnEachTime) {
    gate held;
    const stream a(here());
    const stream b(here());
    array x = zeros(1, dtype::float64, a);
    array y = zeros(1, dtype::float64, b);
    array z = zeros(1, dtype::float64, b);
    held.hold(a);
    held.hold(b);
    const auto add = [](auto i, auto element, double by) { element[i] += by; };
    constexpr int launches = 100;
    double shared = 0;
    for (int i = 1; i <= launches; ++i) {
        // By value, by reference to a variable that changes at once, and by reference to one that goes out of scope at once.
        const auto by = std::make_unique<double>(i);
        parallel_for(
            a, 1, [add, by = *by](auto k, auto e) { add(k, e, by); }, inout(x.view<double>()));
        parallel_for(
            b, 1, [add, i](auto k, auto e) { add(k, e, -i); }, inout(y.view<double>()));
        shared = i;
        parallel_for(
            b, 1, [add, &shared](auto k, auto e) { add(k, e, shared); }, inout(z.view<double>()));
    }
    held.open();
    constexpr double sum = launches * (launches + 1) / 2.0;
    EXPECT_EQ(x.read<double>()[0], sum);
    EXPECT_EQ(y.read<double>()[0], -sum);
    EXPECT_EQ(z.read<double>()[0], launches * double{launches}) << "control: one argument for all launches";
}

WEIR_CONFORMANCE(C5, TheCurrentStreamIsPerThreadAndPerDeviceAndWhatWasBeforeComesBack) {
    const device other = elsewhere();
    const stream on_here(here());
    const stream on_other(other);
    const stream before_here = current_stream(here());
    const stream before_other = current_stream(other);
    ASSERT_NE(before_here, on_here);
    ASSERT_NE(before_other, on_other);
    {
        const use first(on_here);
        {
            const use second(on_other);
            const use third{stream(here())};
            EXPECT_NE(current_stream(here()), on_here);
            EXPECT_EQ(current_stream(other), on_other);
            std::thread([&] {
                EXPECT_EQ(current_stream(here()), before_here);
                EXPECT_EQ(current_stream(other), before_other);
            }).join();
        }
        EXPECT_EQ(current_stream(here()), on_here) << "not the default";
        EXPECT_EQ(current_stream(other), before_other);
        try {
            const use inner{stream(here())};
            throw std::runtime_error("of the program");
        } catch (const std::runtime_error&) {
            EXPECT_EQ(current_stream(here()), on_here);
        }
    }
    EXPECT_EQ(current_stream(here()), before_here);
}

/// Every kind of object that a program may leave to the end of the process.
struct leftovers {
    std::optional<stream> busy;
    std::optional<array> in_use;
    std::optional<event> pending;
    std::optional<use> current;
    std::shared_ptr<int> kept;
    std::optional<gate> held;
};

/// Static objects are destroyed at the end, after main and in the order that `backwards` says; work is still pending.
[[noreturn]] void end_with_leftovers(bool backwards, const device& busy) {
    static leftovers first;
    static leftovers second;
    leftovers& early = backwards ? second : first;
    leftovers& late = backwards ? first : second;
    early.held.emplace();
    early.busy.emplace(busy);
    late.busy.emplace();
    early.held->hold(*early.busy);
    late.in_use = zeros(1000, dtype::float64, *early.busy);
    early.in_use = zeros(1000, dtype::float64, *late.busy);
    late.pending = early.busy->record({.timing = true});
    late.busy->wait(*late.pending);
    early.kept = std::make_shared<int>(1);
    keep_alive(*late.pending, std::shared_ptr<int>(early.kept));
    host_task(*late.busy, [x = *late.in_use, e = *late.pending] {});
    parallel_for(on(*early.busy).label("fails"), 1, [](auto) { throw std::runtime_error("nobody asks"); });
    late.current.emplace(*late.busy);
    std::exit(7);
}

WEIR_CONFORMANCE(C6DeathTest, ObjectsMayOutliveTheMainFunctionInAnyOrderWithWorkPending) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(end_with_leftovers(false, here()), ::testing::ExitedWithCode(7), "");
    EXPECT_EXIT(end_with_leftovers(true, here()), ::testing::ExitedWithCode(7), "");
}

WEIR_CONFORMANCE(C6, AnOwnerThatIsHeldWeaklyGoesWithTheLastUse) {
    gate held;
    const stream s(here());
    held.hold(s);
    std::weak_ptr<int> weak;
    std::weak_ptr<int> control;
    {
        const auto owner = std::make_shared<int>(5);
        weak = owner;
        parallel_for(s, 1, [owner](auto) {});
        const auto other = std::make_shared<int>(6);
        control = other;
        parallel_for(s, 1, [control](auto) {});
    }
    EXPECT_FALSE(weak.expired());
    EXPECT_TRUE(control.expired()) << "control: held weakly by the kernel, too";
    held.open();
    s.synchronize();
    EXPECT_TRUE(weak.expired());
}

WEIR_CONFORMANCE(C10, APreparedTransformRunsOnTheStreamOfEachCall) {
    gate held;
    const stream a(here());
    const stream b(here());
    array x = full(8, 1, dtype::complex128, b);
    array y = fft::fft(b, x);  // the same transform again uses what was prepared
    b.synchronize();
    held.hold(a);
    array on_a = fft::fft(a, x);
    array on_b = fft::fft(b, x);
    EXPECT_EQ(on_b.read<std::complex<double>>()[0], y.read<std::complex<double>>()[0]);
    EXPECT_FALSE(on_a.ready());
    held.open();
    EXPECT_EQ(on_a.read<std::complex<double>>()[0], 8.0);
}

/// Two streams fill a slice of one array each, with 1 and 2, while the first stream is held. Returns the array, once both are done.
std::vector<double> filled_by_two(const std::function<array(const array&)>& first_slice,
                                  const std::function<array(const array&)>& second_slice, bool second_ends_first) {
    const test::time_limit hangs(20, "a stream that is not held");
    const stream first(here());
    const stream second(here());
    array x = zeros(8, dtype::float64, first);
    first.synchronize();
    gate held;
    held.hold(first);
    const completion late = fill(first, first_slice(x), 1);
    const completion other = fill(second, second_slice(x), 2);
    if (second_ends_first) {
        other.synchronize();
    }
    EXPECT_FALSE(late.done());
    EXPECT_EQ(other.done(), second_ends_first);
    held.open();
    first.synchronize();
    second.synchronize();
    const auto seen = x.read<double>();
    return {seen.begin(), seen.end()};
}

WEIR_CONFORMANCE(O3, OperationsOnDisjointSlicesOfOneArrayAreNotOrdered) {
    const auto low = [](const array& x) { return x.slice(0, 4); };
    const auto high = [](const array& x) { return x.slice(4, 8); };
    EXPECT_THAT(filled_by_two(low, high, true), ElementsAre(1, 1, 1, 1, 2, 2, 2, 2));
    EXPECT_THAT(filled_by_two(high, low, true), ElementsAre(2, 2, 2, 2, 1, 1, 1, 1));
    const auto even = [](const array& x) { return x[{slice{0, 8, 2}}]; };
    const auto odd = [](const array& x) { return x[{slice{1, 8, 2}}]; };
    EXPECT_THAT(filled_by_two(even, odd, true), ElementsAre(1, 2, 1, 2, 1, 2, 1, 2));
}

WEIR_CONFORMANCE(O3, ControlOperationsOnSlicesThatOverlapAreOrderedUnlessTheProgramOrdersThem) {
    const auto low = [](const array& x) { return x.slice(0, 5); };
    const auto high = [](const array& x) { return x.slice(4, 8); };
    EXPECT_THAT(filled_by_two(low, high, false), ElementsAre(1, 1, 1, 1, 2, 2, 2, 2));
    const ordering_scope manual(ordering_mode::manual);
    EXPECT_THAT(filled_by_two(low, high, true), ElementsAre(1, 1, 1, 1, 1, 2, 2, 2)) << "the second one came first";
}

}  // namespace
}  // namespace weir
