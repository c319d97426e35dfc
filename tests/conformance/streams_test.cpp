// Section C of the scenarios: streams and events as a program uses them.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "weir/weir.hpp"

namespace weir {
namespace {

using testing::gate;

TEST(C1, AStreamThatIsClosedTwiceSaysSoAndRefusesEveryUse) {
    stream s(cpu(), {.priority = 0, .name = "once"});
    EXPECT_TRUE(s);
    s.close();
    s.close();
    EXPECT_FALSE(s);
    const array x = zeros(4);
    EXPECT_THROW(fill(s, x, 1), state_error);
    EXPECT_THROW(static_cast<void>(empty(4, dtype::float64, s)), state_error);
    EXPECT_THROW(s.wait(event(completion())), state_error);
    EXPECT_THROW(static_cast<void>(s.record()), state_error);
    EXPECT_THROW(static_cast<void>(s.record({.timing = true})), state_error);
    EXPECT_THROW(use{s}, state_error);
    const stream open;
    EXPECT_THROW(open.wait(s), state_error);
    EXPECT_TRUE(s.done());
    s.synchronize();
}

TEST(C2, KernelsOfTwoStreamsMeet) {
    const stream a;
    const stream b;
    std::atomic<int> there{0};
    const auto meet = [&](auto) {
        ++there;
        while (there < 2) {
            std::this_thread::yield();
        }
    };
    host_task(a, [&] { meet(0); });
    host_task(b, [&] { meet(0); });
    a.synchronize();
    b.synchronize();
    EXPECT_EQ(there, 2);
}

TEST(C4, TheSameKernelOnTwoStreamsHasArgumentsOfItsOwnEachTime) {
    gate held;
    const stream a;
    const stream b;
    held.hold(a);
    held.hold(b);
    const auto add = [](auto i, auto x, double by) { x[i] += by; };
    constexpr int launches = 100;
    const array x = zeros(1, dtype::float64, a);
    const array y = zeros(1, dtype::float64, b);
    for (int i = 1; i <= launches; ++i) {
        // By value, by reference to what changes at once, and by what goes out of scope at once.
        const auto by = std::make_unique<double>(i);
        parallel_for(
            a, 1, [add, by = *by](auto k, auto e) { add(k, e, by); }, inout(x.view<double>()));
        parallel_for(
            b, 1, [add, i](auto k, auto e) { add(k, e, -i); }, inout(y.view<double>()));
    }
    held.open();
    EXPECT_EQ(x.read<double>()[0], launches * (launches + 1) / 2.0);
    EXPECT_EQ(y.read<double>()[0], -launches * (launches + 1) / 2.0);
}

TEST(C5, TheCurrentStreamIsPerThreadAndPerDevice) {
    const stream on_cpu;
    const stream on_sim(sim(0));
    const stream before_cpu = current_stream(cpu());
    const stream before_sim = current_stream(sim(0));
    {
        const use first(on_cpu);
        {
            const use second(on_sim);
            EXPECT_EQ(stream_ref(current_stream(cpu())), stream_ref(on_cpu));
            EXPECT_EQ(stream_ref(current_stream(sim(0))), stream_ref(on_sim));
            std::thread([&] {
                EXPECT_EQ(stream_ref(current_stream(cpu())), stream_ref(before_cpu));
                EXPECT_EQ(stream_ref(current_stream(sim(0))), stream_ref(before_sim));
            }).join();
        }
        EXPECT_EQ(stream_ref(current_stream(cpu())), stream_ref(on_cpu));
        EXPECT_EQ(stream_ref(current_stream(sim(0))), stream_ref(before_sim));
    }
    EXPECT_EQ(stream_ref(current_stream(cpu())), stream_ref(before_cpu));
}

/// Everything that a program may leave to the end of the process.
struct leftovers {
    std::optional<stream> busy;
    std::optional<array> in_use;
    std::optional<event> pending;
    std::optional<use> current;
    std::shared_ptr<int> kept;
    std::optional<gate> held;
};

/// Static objects go at the end, after the main function and in the order that `order` says; work is still pending.
[[noreturn]] void end_with_leftovers(int order) {
    static leftovers first;
    static leftovers second;
    leftovers& early = order % 2 == 0 ? first : second;
    leftovers& late = order % 2 == 0 ? second : first;
    early.held.emplace();
    early.busy.emplace(order < 2 ? cpu() : sim(0));
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

TEST(C6DeathTest, ObjectsMayOutliveTheMainFunctionInAnyOrderWithWorkPending) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    for (int order = 0; order < 4; ++order) {
        EXPECT_EXIT(end_with_leftovers(order), ::testing::ExitedWithCode(7), "") << order;
    }
}

TEST(C6, AnOwnerThatIsHeldWeaklyGoesWithTheLastUse) {
    gate held;
    const stream s;
    held.hold(s);
    std::weak_ptr<int> weak;
    {
        const auto owner = std::make_shared<int>(5);
        weak = owner;
        parallel_for(s, 1, [owner](auto) {});
    }
    EXPECT_FALSE(weak.expired());
    held.open();
    s.synchronize();
    EXPECT_TRUE(weak.expired());
}

TEST(C10, APreparedTransformRunsOnTheStreamOfEachCall) {
    gate held;
    const stream a;
    const stream b;
    const array x = full(8, 1, dtype::complex128, b);
    const array y = fft::fft(b, x);  // the same transform again is served from what was prepared
    b.synchronize();
    held.hold(a);
    const array on_a = fft::fft(a, x);
    const array on_b = fft::fft(b, x);
    EXPECT_EQ(on_b.read<std::complex<double>>()[0], y.read<std::complex<double>>()[0]);
    EXPECT_FALSE(on_a.ready());
    held.open();
    EXPECT_EQ(on_a.read<std::complex<double>>()[0], 8.0);
}

}  // namespace
}  // namespace weir
