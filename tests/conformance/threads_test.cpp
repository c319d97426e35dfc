// Many host threads, many streams (rules O8, S4), through the public interface.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "support/devices.hpp"
#include "support/effort.hpp"
#include "support/time_limit.hpp"
#include "weir/detail/host_copy.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::here;
using test::streams_here;
using test::time_limit;

using testing::gate;

/// Two workers for all streams, however many cores there are. Read at the first use of Weir.
[[maybe_unused]] const int two_workers = ::setenv("WEIR_CPU_THREADS", "2", 1);

/// A time limit in seconds for a test that would hang if it failed.
constexpr unsigned enough = test::sanitized ? 240 : 60;

constexpr int host_threads = 8;
constexpr int rounds = 500;

/// x += 1, element by element.
completion add_one(const stream_ref& s, array x) {
    return parallel_for(
        s, x.size(), [](auto i, auto elements) { elements[i] += 1; }, inout(x.view<double>()));
}

/// Runs `work(thread)` on eight host threads, which start together.
template <class Work>
void on_eight_threads(Work&& work) {
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < host_threads; ++thread) {
        threads.emplace_back([&, thread] {
            ++ready;
            while (ready < host_threads) {
                std::this_thread::yield();
            }
            work(thread);
        });
    }
    for (std::thread& one : threads) {
        one.join();
    }
}

WEIR_CONFORMANCE(O8, EightThreadsOnOneStreamLoseNothingAndKeepTheirOwnOrder) {
    const stream s{here()};
    array sum = zeros(16, dtype::float64, s);
    array last = zeros(host_threads, dtype::float64, s);
    on_eight_threads([&](int thread) {
        array mine = last.slice(thread, thread + 1);
        for (int round = 0; round < rounds; ++round) {
            add_one(s, sum);
            // Only right if the thread's rounds run in the order in which it enqueued them.
            parallel_for(
                s, 1, [round](auto, auto x) { x[0] = x[0] == round ? round + 1 : -1; }, inout(mine.view<double>()));
        }
    });
    for (const double each : sum.read<double>()) {
        EXPECT_EQ(each, host_threads * rounds);
    }
    for (const double each : last.read<double>()) {
        EXPECT_EQ(each, rounds);
    }
}

WEIR_CONFORMANCE(O8, EightThreadsOnManyStreamsAndOneArrayLoseNothing) {
    const std::vector<stream> streams = streams_here(5);
    array sum = zeros(16, dtype::float64, streams[0]);
    on_eight_threads([&](int thread) {
        for (int round = 0; round < rounds; ++round) {
            // Each thread uses all streams; the array's parts overlap.
            const stream& s = streams[static_cast<std::size_t>(thread + round) % streams.size()];
            add_one(s, round % 2 == 0 ? sum : sum.slice(thread, thread + 8));
        }
    });
    const auto seen = sum.read<double>();
    for (std::int64_t i = 0; i < 16; ++i) {
        const std::int64_t parts = std::min<std::int64_t>(i, host_threads - 1) - std::max<std::int64_t>(i - 7, 0) + 1;
        EXPECT_EQ(seen[static_cast<std::size_t>(i)], rounds / 2 * host_threads + rounds / 2 * parts);
    }
}

/// This holds for the host's copy: a view shows the contents of the memory at each moment.
WEIR_CONFORMANCE(O8, WhatAThreadCopiesIsOfOneMoment) {
    const stream s{here()};
    array x = zeros(5000, dtype::float64, s);
    std::atomic<int> torn{0};
    on_eight_threads([&](int /*thread*/) {
        std::vector<double> seen(static_cast<std::size_t>(x.size()));
        for (int round = 0; round < 30; ++round) {
            add_one(s, x);
            detail::copy_to_host(x, std::as_writable_bytes(std::span(seen)).data(), source_location::current());
            torn += std::adjacent_find(seen.begin(), seen.end(), std::not_equal_to<>()) == seen.end() ? 0 : 1;
        }
    });
    EXPECT_EQ(torn.load(), 0);
}

WEIR_CONFORMANCE(O8, ControlTwoUnorderedAdditionsLoseOne) {
    const time_limit limit(enough, "an addition that meets another one");
    const stream first{here()};
    const stream second{here()};
    array sum = zeros(1, dtype::float64, first);
    first.synchronize();
    const ordering_scope mode(ordering_mode::manual);
    std::atomic<int> met{0};
    const auto add = [&met](std::span<double> x) {
        // Atomic, so that the addition is lost without being undefined.
        const std::atomic_ref element(x[0]);
        const double before = element.load();
        ++met;
        while (met < 2) {
            std::this_thread::yield();
        }
        element.store(before + 1);
    };
    for (const stream& s : {first, second}) {
        access(
            s, [&](native_stream, std::span<double> x) { add(x); }, inout(sum.view<double>()));
    }
    first.synchronize();
    second.synchronize();
    EXPECT_EQ(sum.read<double>()[0], 1);
}

// A worker that has just run a stream's last operation stays with the stream for a moment. Meanwhile it also looks for
// other streams' work; if it then leaves such work, another worker must be woken for it, or the two operations never meet.
WEIR_CONFORMANCE(S1, TwoOperationsThatMeetAlwaysRunAtOnce) {
    const time_limit limit(enough, "an operation that meets another one");
    const stream first{here()};
    const stream second{here()};
    for (int round = 0; round < 1000; ++round) {
        std::atomic<int> met{0};
        std::atomic<int> passed{0};
        const auto meet = [&](native_stream) {
            ++met;
            while (met < 2) {
                std::this_thread::yield();
            }
            ++passed;
        };
        access(first, [](native_stream) {}).synchronize();
        const completion one = access(first, meet);
        const completion other = access(second, meet);
        first.synchronize();
        second.synchronize();
        EXPECT_EQ(met, 2);
        EXPECT_EQ(passed, 2) << "a synchronized stream has run its operation to the end";
        EXPECT_TRUE(one.done() && other.done());
    }
}

WEIR_CONFORMANCE(S4, TenThousandStreamsAreMadeAndDroppedBusyOnTwoWorkers) {
    // Each busy stream of the fake CUDA driver is a thread, and the thread sanitizer does not support so many.
    const int count = here().kind() == device_kind::cuda ? 1'000 : 10'000;
    constexpr int sums = 50;
    gate held;
    const stream home{here()};
    array sum = zeros(sums, dtype::float64, home);
    home.synchronize();
    for (int i = 0; i < count; ++i) {
        const stream s{here()};
        held.hold(s);
        // The temporary is dropped busy, too, and its memory has no new owner before its reader is done.
        array one = full(8, 1, dtype::float64, s);
        array part = sum.slice(i % sums, i % sums + 1);
        parallel_for(
            s, 1, [](auto, auto total, auto x) { total[0] += x[7]; }, inout(part.view<double>()),
            in(one.view<double>()));
    }
    // Making and dropping them has not blocked: the gate was closed all the time.
    EXPECT_FALSE(sum.ready());
    held.open();
    for (const double each : sum.read<double>()) {
        EXPECT_EQ(each, count / sums);
    }
}

WEIR_CONFORMANCE(S4, WorkOfADroppedStreamOrdersWhatComesAfterIt) {
    gate held;
    const stream other{here()};
    array x = zeros(4, dtype::float64, other);
    completion last;
    {
        const stream busy{here()};
        held.hold(busy);
        last = fill(busy, x, 3);
    }
    add_one(other, x);
    EXPECT_FALSE(last.done());
    held.open();
    EXPECT_EQ(x.read<double>()[3], 4);
    last.synchronize();
}

WEIR_CONFORMANCE(C9, ADroppedStreamIsWaitedForBusyOrIdle) {
    const time_limit limit(enough, "an array that is to become ready");
    // Under check, which shows what is known to be complete: the results of the program are the same.
    for (const bool busy : {false, true}) {
        const check_scope scope;
        const stream other{here()};
        array x = zeros(4, dtype::float64, other);
        const ordering_scope mode(ordering_mode::manual);
        other.synchronize();
        gate held;
        completion last;
        {
            const stream dropped{here()};
            if (busy) {
                held.hold(dropped);
            }
            last = fill(dropped, x, 1);
        }
        if (!busy) {
            // Not by `done`: its answer would order the work by itself.
            while (!x.ready()) {
                std::this_thread::yield();
            }
        }
        held.open();
        here().synchronize();
        fill(other, x, 2);
        EXPECT_TRUE(scope.report().empty()) << scope.report().to_string();
        other.synchronize();
    }
}

WEIR_CONFORMANCE(C9, ControlWithoutTheWaitADroppedStreamIsNotOrdered) {
    const check_scope scope;
    const stream other{here()};
    array x = zeros(4, dtype::float64, other);
    const ordering_scope mode(ordering_mode::manual);
    other.synchronize();
    {
        const stream dropped{here()};
        fill(dropped, x, 1);
    }
    fill(other, x, 2);
    EXPECT_EQ(scope.report().size(), 1U);
    other.synchronize();
}

WEIR_CONFORMANCE(S3, WaitingForAStreamThatDidNothingOrdersNothing) {
    const check_scope scope;
    const stream other{here()};
    array x = zeros(4, dtype::float64, other);
    const ordering_scope mode(ordering_mode::manual);
    other.synchronize();
    completion last;
    {
        const stream dropped{here()};
        last = fill(dropped, x, 1);
    }
    // Timelines are reused: sooner or later a new stream has that of the dropped one, and is not ordered after its work.
    std::vector<stream> heirs = streams_here(1);
    while (heirs.back().record().recorded().timeline(detail::key) != last.timeline(detail::key)) {
        ASSERT_LT(heirs.size(), 10'000U);
        std::this_thread::yield();
        heirs.emplace_back(here());
    }
    const stream& heir = heirs.back();
    EXPECT_TRUE(heir.done());
    heir.synchronize();
    other.wait(heir);
    other.wait(heir.record());
    fill(other, x, 2);
    EXPECT_EQ(scope.report().size(), 1U);
    other.synchronize();
}

WEIR_CONFORMANCE(D5, EventsHandedFromThreadToThreadOrderWorkAndThatOneThreadComesAfterTheOtherDoesNot) {
    for (const bool is_handed : {true, false}) {
        const stream a{here()};
        const stream b{here()};
        array x = zeros(4, dtype::float64, a);
        array y = zeros(4, dtype::float64, b);
        a.synchronize();
        b.synchronize();
        gate held;
        held.hold(a);
        event filled;
        std::thread([&] {
            const ordering_scope mode(ordering_mode::manual);
            fill(a, x, 7);
            filled = a.record();
        }).join();
        completion copied;
        std::thread([&] {
            const ordering_scope mode(ordering_mode::manual);
            if (is_handed) {
                b.wait(filled);
            }
            copied = copy(b, y, x);
        }).join();
        if (is_handed) {
            EXPECT_FALSE(copied.done());
        } else {
            copied.synchronize();
        }
        held.open();
        b.synchronize();
        EXPECT_EQ(y.read<double>()[3], is_handed ? 7 : 0) << "0 is the control";
        a.synchronize();
    }
}

}  // namespace
}  // namespace weir
