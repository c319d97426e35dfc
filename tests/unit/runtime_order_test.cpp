#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "observe/observers.hpp"
#include "runtime/streams/stream_state.hpp"
#include "support/beside.hpp"
#include "support/effort.hpp"
#include "support/time_limit.hpp"
#include "support/tracked.hpp"
#include "weir/error.hpp"
#include "weir/testing.hpp"
#include "weir/trace.hpp"

namespace weir {
namespace {

using test::enqueue;
using test::time_limit;
using test::tracked;
using testing::gate;

/// A time limit in seconds for a test that would hang if it failed.
constexpr unsigned enough = test::sanitized ? 120 : 30;

/// Counts the waits that are issued and elided while it lives.
class counter final : public observe::observer {
public:
    counter() { observe::observers::add(*this); }
    ~counter() override { observe::observers::remove(*this); }
    counter(const counter&) = delete;
    counter& operator=(const counter&) = delete;

    void operation(const observe::observed_operation& one) override {
        issued += one.waits.size();
        elided += one.elisions.size();
    }
    std::atomic<std::size_t> issued{0};
    std::atomic<std::size_t> elided{0};
};

/// `x` is 1 after the held writer. Returns what a reader on another stream sees, with the writer held until the reader is
/// enqueued: 1 if it was ordered, 0 if it ran at once.
int what_a_reader_sees(ordering_mode mode) {
    const time_limit limit(enough, "a reader");
    const ordering_scope scope(mode);
    gate held;
    const stream writer;
    const stream reader;
    tracked memory;
    std::atomic<int> x{0};
    int seen = -1;
    held.hold(writer);
    enqueue(writer, {memory.writes()}, [&] { x = 1; });
    const completion read = enqueue(reader, {memory.reads()}, [&] { seen = x; });
    if (mode == ordering_mode::manual) {
        read.synchronize();  // nothing holds it back: a wait of Weir's would hang here
    }
    held.open();
    read.synchronize();
    writer.synchronize();
    return seen;
}

TEST(O1, AReadIsOrderedAfterAWriteOnAnotherStream) { EXPECT_EQ(what_a_reader_sees(ordering_mode::automatic), 1); }

TEST(O1, ControlWithoutOrderingTheReadComesTooEarly) { EXPECT_EQ(what_a_reader_sees(ordering_mode::manual), 0); }

TEST(O1, AWriteIsOrderedAfterReadsAndWritesOnOtherStreams) {
    gate held;
    std::vector<stream> readers(3);
    const stream writer;
    tracked memory;
    std::atomic<int> reads{0};
    for (const stream& reader : readers) {
        held.hold(reader);
        enqueue(reader, {memory.reads()}, [&] { ++reads; });
    }
    int seen = -1;
    const completion write = enqueue(writer, {memory.writes()}, [&] { seen = reads; });
    EXPECT_FALSE(write.done());
    held.open();
    write.synchronize();
    EXPECT_EQ(seen, 3);
}

TEST(O1, ReadsDoNotOrderReads) {
    const time_limit limit(enough, "a read that is not ordered after another one");
    gate held;
    const stream first;
    const stream second;
    tracked memory;
    std::atomic<int> ran{0};
    held.hold(first);
    const completion held_back = enqueue(first, {memory.reads()}, [&] { ran += 10; });
    enqueue(second, {memory.reads()}, [&] { ran += 1; }).synchronize();
    EXPECT_EQ(ran, 1) << "the second ran, while the first one is held";
    EXPECT_FALSE(held_back.done());
    held.open();
    first.synchronize();
    EXPECT_EQ(ran, 11);
}

TEST(O2, AWaitThatIsImpliedIsNotIssued) {
    gate held;  // nothing completes, so nothing is elided for being complete
    const stream a;
    const stream b;
    const stream c;
    tracked x;
    tracked y;
    held.hold(a);
    counter count;
    std::atomic<int> ran{0};
    const auto runs_as = [&ran](int number) { return [&ran, number] { ran = ran == number - 1 ? number : -1; }; };
    enqueue(a, {x.writes()}, runs_as(1));
    enqueue(b, {x.reads(), y.writes()}, runs_as(2));  // waits for a
    enqueue(c, {y.reads(), x.reads()}, runs_as(3));   // waits for b, which implies a
    enqueue(c, {x.reads()}, runs_as(4));              // ordered already
    EXPECT_EQ(count.issued, 2U);
    EXPECT_EQ(count.elided, 2U);
    EXPECT_EQ(ran, 0);
    held.open();
    c.synchronize();
    EXPECT_EQ(ran, 4) << "one after the other";
}

TEST(O3, DisjointRangesDoNotOrderEachOther) {
    const time_limit limit(enough, "a write to another range");
    gate held;
    const stream first;
    const stream second;
    tracked memory(100);
    std::atomic<int> ran{0};
    held.hold(first);
    enqueue(first, {memory.writes(0, 50)}, [&] { ran += 10; });
    enqueue(second, {memory.writes(50, 100)}, [&] { ran += 1; }).synchronize();
    EXPECT_EQ(ran, 1) << "the second ran, while the first one is held";
    int seen = 0;
    const completion overlapping = enqueue(second, {memory.reads(49, 51)}, [&] { seen = ran; });
    EXPECT_FALSE(overlapping.done());
    held.open();
    overlapping.synchronize();
    EXPECT_EQ(seen, 11);
}

TEST(O4, AProgramThatUsesOneStreamIssuesNoWaits) {
    counter count;
    const stream s;
    tracked memory;
    int ran = 0;
    for (int i = 0; i < 100; ++i) {
        enqueue(s, {memory.writes()}, [&ran, i] { ran = ran == i ? i + 1 : -1; });
    }
    s.synchronize();
    EXPECT_EQ(ran, 100) << "one after the other";
    EXPECT_EQ(count.issued, 0U);
}

TEST(O5, AfterAddsADependencyInEveryMode) {
    for (const ordering_mode mode : {ordering_mode::automatic, ordering_mode::manual}) {
        const ordering_scope scope(mode);
        gate held;
        const stream a;
        const stream b;
        std::atomic<bool> ran{false};
        held.hold(a);
        const completion first = enqueue(a, {}, [&] { ran = true; });
        bool seen = false;
        const completion second = enqueue(b, {}, [&] { seen = ran; }, {first});
        EXPECT_FALSE(second.done());
        held.open();
        second.synchronize();
        EXPECT_TRUE(seen);
    }
}

TEST(O5, TheArraysModeWinsOverStreamScopeAndProcess) {
    gate held;
    const ordering_scope scope(ordering_mode::manual);
    const stream a;
    const stream b;
    tracked memory;
    memory.set_ordering(ordering_mode::automatic);
    std::atomic<bool> ran{false};
    bool seen = false;
    held.hold(a);
    enqueue(a, {memory.writes()}, [&] { ran = true; });
    const trace_scope trace;
    const completion ordered = enqueue(b, {memory.reads()}, [&] { seen = ran; });
    EXPECT_EQ(trace.summary().waits_issued, 1U);
    EXPECT_FALSE(ordered.done());
    held.open();
    ordered.synchronize();
    EXPECT_TRUE(seen);
}

constexpr int few = 1000;

/// Whether a write on one stream completes while a write to the same memory on another stream is held. Asks at most `looks` times, and no
/// longer than two seconds after the first `few` times: on a busy machine each query takes as long as other threads run.
bool runs_unordered(tracked& memory, const stream& other, int looks = 100'000) {
    gate held;
    const stream first;
    held.hold(first);
    enqueue(first, {memory.writes()}, [] {});
    const completion second = enqueue(other, {memory.writes()}, [] {});
    bool is_over = second.done();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    for (int i = 0; i < looks && !is_over && (i < few || std::chrono::steady_clock::now() < end); ++i) {
        std::this_thread::yield();
        is_over = second.done();
    }
    held.open();
    first.synchronize();
    second.synchronize();
    return is_over;
}

TEST(O5, WhatTheProgramOrdersIsNotOrdered) {
    const stream s;
    tracked memory;
    EXPECT_FALSE(runs_unordered(memory, s, few));
    memory.set_ordering(ordering_mode::manual);
    EXPECT_TRUE(runs_unordered(memory, s)) << "the array";
    memory.set_ordering(std::nullopt);
    s.set_ordering(ordering_mode::manual);
    EXPECT_TRUE(runs_unordered(memory, s)) << "the stream";
    s.set_ordering(std::nullopt);
    {
        const ordering_scope scope(ordering_mode::manual);
        EXPECT_TRUE(runs_unordered(memory, s)) << "the scope";
    }
    set_ordering(ordering_mode::manual);
    EXPECT_TRUE(runs_unordered(memory, s)) << "the process";
    set_ordering(ordering_mode::automatic);
    EXPECT_FALSE(runs_unordered(memory, s, few));
}

TEST(O5, ReturningToAutomaticIsSafeAtOnce) {
    const time_limit limit(enough, "a write that the program leaves unordered");
    gate held;
    const stream a;
    const stream b;
    tracked memory;
    std::atomic<int> ran{0};
    held.hold(a);
    {
        const ordering_scope scope(ordering_mode::manual);
        enqueue(a, {memory.writes()}, [&] { ran += 10; });
        enqueue(b, {memory.writes()}, [&] { ran += 1; }).synchronize();
        EXPECT_EQ(ran, 1) << "unordered, as asked";
    }
    const stream c;
    int seen = 0;
    const completion ordered = enqueue(c, {memory.reads()}, [&] { seen = ran; });
    EXPECT_FALSE(ordered.done()) << "the write on the held stream is still pending";
    held.open();
    ordered.synchronize();
    EXPECT_EQ(seen, 11);
}

TEST(O8, EightThreadsMayUseTheSameStreamsAndMemory) {
    constexpr int threads = 8;
    constexpr int each = 500;
    std::vector<stream> streams(4);
    std::vector<tracked> memory(3);
    std::vector<long> value(memory.size(), 0);  // changed by operations only; a lost update shows
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t) {
        all.emplace_back([&, t] {
            for (int i = 0; i < each; ++i) {
                const auto first = static_cast<std::size_t>(t + i) % memory.size();
                const auto second = static_cast<std::size_t>(t + 2 * i + 1) % memory.size();
                enqueue(streams[static_cast<std::size_t>(t * i) % streams.size()],
                        {memory[first].writes(), memory[second].writes()}, [&value, first, second] {
                            ++value[first];
                            ++value[second];
                        });
            }
        });
    }
    for (std::thread& one : all) {
        one.join();
    }
    cpu().synchronize();
    EXPECT_EQ(value[0] + value[1] + value[2], 2L * threads * each);
}

TEST(D5, EventsHandedFromThreadToThreadOrderWork) {
    gate held;
    const stream a;
    const stream b;
    int value = 0;
    held.hold(a);
    enqueue(a, {}, [&] { value = 7; });
    const event handed = a.record();
    completion read;
    int seen = 0;
    std::thread([&] {
        b.wait(handed);
        read = enqueue(b, {}, [&] { seen = value; });
    }).join();
    EXPECT_FALSE(read.done());
    held.open();
    read.synchronize();
    EXPECT_EQ(seen, 7);
}

/// Notes what an event stands for, and what is waited for through it, in the order in which observers are told.
class event_order final : public observe::observer {
public:
    event_order() { observe::observers::add(*this); }
    ~event_order() override { observe::observers::remove(*this); }
    event_order(const event_order&) = delete;
    event_order& operator=(const event_order&) = delete;

    void event_recorded(std::uint64_t event, const observe::stream_info& /*on*/, frontiers::point at,
                        const source_location& /*where*/) override {
        const std::lock_guard lock(mutex_);
        if (event == of) {
            stands_for_ = at;
        }
    }
    void stream_waits(const observe::stream_info& /*on*/, frontiers::epoch /*at*/, frontiers::point target,
                      std::uint64_t event, observe::wait_made /*how*/, const source_location& /*where*/) override {
        const std::lock_guard lock(mutex_);
        if (event == of) {
            is_right = is_right && target == stands_for_;
            ++waits;
        }
    }
    std::uint64_t of = 0;
    bool is_right = true;
    int waits = 0;

private:
    std::mutex mutex_;
    frontiers::point stands_for_;
};

TEST(D5, V4ObserversSeeAWaitThroughAnEventBeforeTheEventIsRecordedAgain) {
    const time_limit limit(enough, "a stream waits for an event that another thread records");
    const stream waits;
    const stream records;
    event shared;
    event_order seen;
    seen.of = shared.unique_id();
    enqueue(records, {}, [] {});
    std::unique_lock held(waits.state(detail::key).mutex);
    test::beside waiter([&] { waits.wait(shared); });
    ASSERT_TRUE(waiter.waits()) << "it has read what the event stands for";
    test::beside recorder([&] { shared.record(records); });
    static_cast<void>(recorder.waits());
    held.unlock();
    waiter.join();
    recorder.join();
    EXPECT_TRUE(seen.is_right) << "a log would say that the wait was for another moment than the event stands for";
    EXPECT_EQ(seen.waits, 1);
}

}  // namespace
}  // namespace weir
