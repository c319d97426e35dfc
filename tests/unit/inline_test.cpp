// The device without queues (rule S8): operations run at enqueue.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "support/arrays.hpp"
#include "support/tracked.hpp"
#include "weir/error.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::enqueue;
using test::values_of;

TEST(S8, AnOperationIsOverWhenTheCallReturnsOnTheThreadThatEnqueuedIt) {
    const stream s(cpu_inline());
    std::thread::id ran_on;
    for (const auto kind : {runtime::work_kind::device, runtime::work_kind::host_task, runtime::work_kind::copy}) {
        const completion end = enqueue(
            s, {}, [&] { ran_on = std::this_thread::get_id(); }, {}, kind);
        EXPECT_EQ(ran_on, std::this_thread::get_id());
        EXPECT_TRUE(end.done());
        EXPECT_TRUE(s.record().done());
        EXPECT_TRUE(s.done());
        ran_on = {};
    }
    EXPECT_EQ(cpu_inline().name(), "cpu:inline");
    EXPECT_EQ(device::from_name("cpu:inline"), cpu_inline());
    EXPECT_EQ(s.device(), cpu_inline());
}

TEST(S8, AnOperationBlocksOnUnfinishedWorkOfOtherStreams) {
    const stream queued;
    const stream at_once(cpu_inline());
    array x = zeros({64}, dtype::float64, queued);
    testing::gate hold;
    hold.hold(queued);
    fill(queued, x, 3);
    std::atomic<bool> returned{false};
    double seen = 0;
    std::thread other([&] {
        parallel_for(
            at_once, 1, [&](auto, auto v) { seen = v[0]; }, in(x.view<double>()));
        returned = true;
    });
    // It cannot have returned: what it waits for is held back.
    EXPECT_FALSE(returned);
    hold.open();
    other.join();
    EXPECT_EQ(seen, 3);
    // The other way round: what a queue does after an operation that is over already.
    parallel_for(
        at_once, 1, [](auto, auto v) { v[0] = 7; }, inout(x.view<double>()));
    parallel_for(
        queued, 1, [](auto, auto v) { v[0] *= 2; }, inout(x.view<double>()));
    EXPECT_EQ(values_of<double>(x)[0], 14);
}

TEST(S8, WhatAnOperationEnqueuesRunsAfterItInTheOrderOfEnqueueing) {
    const stream a(cpu_inline());
    const stream b(cpu_inline());
    std::vector<int> order;
    enqueue(a, {}, [&] {
        order.push_back(1);
        const completion first = enqueue(b, {}, [&] { order.push_back(3); });
        const completion second = enqueue(a, {}, [&] { order.push_back(4); }, {first});
        enqueue(b, {}, [&] { order.push_back(5); }, {second});
        EXPECT_FALSE(second.done());
        order.push_back(2);
    });
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4, 5}));
    enqueue(b, {}, [&] { order.push_back(6); });
    EXPECT_EQ(order.back(), 6);
}

TEST(S8, SeveralThreadsOnOneStreamTakeTurns) {
    const stream s(cpu_inline());
    constexpr int threads = 8;
    constexpr int rounds = 500;
    int inside = 0;
    int sum = 0;
    int overlaps = 0;
    std::array<int, threads> last{};
    std::atomic<int> not_over{0};
    std::vector<std::thread> all;
    for (int thread = 0; thread < threads; ++thread) {
        all.emplace_back([&, thread] {
            for (int round = 1; round <= rounds; ++round) {
                const completion end = enqueue(s, {}, [&, thread, round] {
                    overlaps += ++inside == 1 ? 0 : 1;
                    ++sum;
                    last[static_cast<std::size_t>(thread)] += last[static_cast<std::size_t>(thread)] == round - 1;
                    --inside;
                });
                not_over += end.done() ? 0 : 1;
            }
        });
    }
    for (std::thread& one : all) {
        one.join();
    }
    EXPECT_EQ(sum, threads * rounds);
    EXPECT_EQ(overlaps, 0);
    EXPECT_EQ(not_over, 0);
    for (const int each : last) {
        EXPECT_EQ(each, rounds);
    }
}

TEST(S8, AFailureIsReportedAsOnAQueue) {
    const stream s(cpu_inline());
    enqueue(s, {}, [] { throw std::runtime_error("on purpose"); });
    EXPECT_THROW(s.synchronize(), operation_error);
}

TEST(S8, AGateCannotHoldIt) {
    const stream s(cpu_inline());
    testing::gate never;
    EXPECT_THROW(never.hold(s), state_error);
    bool ran = false;
    enqueue(s, {}, [&] { ran = true; });
    EXPECT_TRUE(ran) << "the refused gate has left nothing behind";
}

TEST(S8, ItSharesTheCpusMemory) {
    const stream queued;
    const stream at_once(cpu_inline());
    array x = zeros({8}, dtype::float64, at_once);
    EXPECT_EQ(x.device(), cpu_inline());
    fill(queued, x, 2);
    fill(at_once, x.slice(0, 1), 5);
    queued.synchronize();
    EXPECT_EQ(values_of<double>(x), (std::vector<double>{5, 2, 2, 2, 2, 2, 2, 2}));
    x.write<double>()[3] = 9;
    EXPECT_EQ(values_of<double>(x)[3], 9);
}

/// A small program: four streams of a device pass three arrays around; what it computes depends on every order that Weir
/// must keep, and on nothing else.
std::vector<double> result_on(device where) {
    std::vector<stream> streams;
    for (int i = 0; i < 4; ++i) {
        streams.emplace_back(where);
    }
    std::vector<array> arrays;
    for (int i = 0; i < 3; ++i) {
        arrays.push_back(full({100}, i + 1, dtype::float64, streams[0]));
    }
    std::uint64_t choice = 12345;
    const auto next = [&](std::size_t below) {
        choice = choice * 6364136223846793005U + 1442695040888963407U;
        return static_cast<std::size_t>(choice >> 33U) % below;
    };
    for (int step = 0; step < 300; ++step) {
        const array& to = arrays[next(3)];
        const std::size_t other = next(3);
        const stream& s = streams[next(4)];
        const std::size_t first = next(90);
        array part = to.slice(static_cast<std::int64_t>(first), static_cast<std::int64_t>(first) + 10);
        if (arrays[other].buffer().unique_id() == to.buffer().unique_id()) {
            parallel_for(
                s, 10, [](auto i, auto v) { v[i] = v[i] * 0.5 + 1; }, inout(part.view<double>()));
        } else if (step % 3 == 0) {
            copy(s, part, arrays[other].slice(5, 15));
        } else {
            parallel_for(
                s, 10, [](auto i, auto v, auto o) { v[i] += o[i * 3] * 0.25; }, inout(part.view<double>()),
                in(arrays[other].view<double>()));
        }
    }
    std::vector<double> all;
    for (const array& each : arrays) {
        const std::vector<double> values = values_of<double>(each);
        all.insert(all.end(), values.begin(), values.end());
    }
    return all;
}

TEST(S8, TheSameProgramGivesTheSameResultsOnEveryDevice) {
    const std::vector<double> expected = result_on(cpu_inline());
    EXPECT_EQ(result_on(cpu()), expected);
    EXPECT_EQ(result_on(sim(0)), expected);
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        const testing::simulated hostile(sim(0), {.engines = 2, .seed = seed, .adversarial = true});
        EXPECT_EQ(result_on(sim(0)), expected) << seed;
    }
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        const testing::simulated told(sim(0), {.seed = seed, .virtual_clock = true});
        EXPECT_EQ(result_on(sim(0)), expected) << seed;
    }
}

TEST(S8, TheControlWithoutOrderingGivesOtherResults) {
    const std::vector<double> expected = result_on(cpu_inline());
    int others = 0;
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const testing::simulated told(sim(0), {.seed = seed, .virtual_clock = true});
        const ordering_scope by_hand(ordering_mode::manual);
        std::vector<double> result = result_on(sim(0));
        sim(0).synchronize();
        others += result == expected ? 0 : 1;
    }
    EXPECT_EQ(others, 5);
}

}  // namespace
}  // namespace weir
