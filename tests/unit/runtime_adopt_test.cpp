// Streams that others own (rules S2, S5, O2, O7; scenarios C8, C9).
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <unordered_set>
#include <vector>

#include "support/native_queues.hpp"
#include "support/tracked.hpp"
#include "weir/error.hpp"
#include "weir/event.hpp"
#include "weir/testing.hpp"
#include "weir/trace.hpp"

namespace weir {
namespace {

using test::enqueue;
using test::shared_thread_queue;
using test::thread_queue;
using test::tracked;

std::shared_ptr<thread_queue::latch> make_latch() { return std::make_shared<thread_queue::latch>(); }

TEST(S5, AdoptingAQueueTwiceGivesEqualStreamsOfOneState) {
    thread_queue q;
    thread_queue other;
    const stream a = stream::adopt(q);
    const stream b = stream::adopt(q);
    const stream c = stream::adopt(other);
    EXPECT_EQ(a, b);
    EXPECT_NE(a, c);
    EXPECT_EQ(std::hash<stream>()(a), std::hash<stream>()(b));
    EXPECT_EQ((std::unordered_set<stream>{a, b, c}.size()), 2U);
    EXPECT_EQ(a.device(), cpu());
    EXPECT_NE(a.to_string().find("adopted"), std::string::npos);
    EXPECT_NE(q.unique_id(), other.unique_id());
}

TEST(S5, AQueueIsKnownByItsNumberAndNotByItsAddress) {
    alignas(thread_queue) std::byte place[sizeof(thread_queue)];
    auto* first = new (place) thread_queue;
    const stream a = stream::adopt(*first);
    first->~thread_queue();
    auto* second = new (place) thread_queue;
    const stream b = stream::adopt(*second);
    EXPECT_NE(a, b) << "the same address, another queue";
    EXPECT_NE(a.unique_id(), b.unique_id());
    b.synchronize();
    second->~thread_queue();
}

TEST(S5, TheOwnerIsKeptAsLongAsThereIsPendingWorkAndNoLonger) {
    auto held = make_latch();
    auto q = std::make_shared<thread_queue>();
    const std::weak_ptr<thread_queue> watch = q;
    std::atomic<bool> ran{false};
    completion last;
    {
        const stream s = stream::adopt(*q, q);
        q->hold(held);
        last = enqueue(s, {}, [&] { ran = true; });
        q.reset();
    }
    EXPECT_FALSE(watch.expired()) << "there is work";
    held->open();
    last.synchronize();
    EXPECT_TRUE(ran);
    while (!watch.expired()) {
        std::this_thread::yield();
    }
}

TEST(S5, ManyThreadsAdoptAndLetGoOfTheSameQueue) {
    thread_queue q;
    std::atomic<int> ran{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 200; ++i) {
                const stream s = stream::adopt(q);
                enqueue(s, {}, [&] { ++ran; });
            }
        });
    }
    for (std::thread& one : threads) {
        one.join();
    }
    stream::adopt(q).synchronize();
    EXPECT_EQ(ran, 1600);
}

TEST(C8, ClosingAndDroppingNeverEndsTheQueue) {
    thread_queue q;
    {
        stream s = stream::adopt(q);
        enqueue(s, {}, [] {});
        s.close();
        EXPECT_THROW(enqueue(s, {}, [] {}), state_error);
        stream again = stream::adopt(q);
        EXPECT_TRUE(again) << "the queue is as good as ever";
        EXPECT_NE(again, s);
        enqueue(again, {}, [] {}).synchronize();
    }
    bool ran = false;
    q.put([&] { ran = true; });
    q.drain();
    EXPECT_TRUE(ran);
}

TEST(S1, AnAdoptedQueueRunsWhatWeirAndItsOwnerPutThereFirstInFirstOut) {
    thread_queue q;
    const stream s = stream::adopt(q);
    std::vector<int> order;
    for (int i = 0; i < 500; i += 2) {
        enqueue(s, {}, [&order, i] { order.push_back(i); });
        q.put([&order, i] { order.push_back(i + 1); });
    }
    s.synchronize();
    ASSERT_EQ(order.size(), 500U);
    for (int i = 0; i < 500; ++i) {
        ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
    }
}

TEST(S2, AnEventOfAnAdoptedStreamCoversWhatItsOwnerPutThere) {
    thread_queue q;
    const stream s = stream::adopt(q);
    const stream other;
    auto held = make_latch();
    int value = 0;
    q.hold(held);
    q.put([&] { value = 42; });
    const event e = s.record();
    other.wait(e);
    int seen = 0;
    const completion read = enqueue(other, {}, [&] { seen = value; });
    EXPECT_FALSE(e.done());
    EXPECT_FALSE(read.done());
    held->open();
    read.synchronize();
    EXPECT_EQ(seen, 42);
}

TEST(O7, AnEventOfAnAdoptedStreamCoversNothingLater) {
    thread_queue q;
    const stream s = stream::adopt(q);
    const event e = s.record();
    auto held = make_latch();
    q.hold(held);
    e.wait();  // would block if the event were recorded late
    EXPECT_FALSE(s.done());
    held->open();
    s.synchronize();
}

TEST(O2, EachWaitForAnAdoptedStreamTakesItsEndAnew) {
    thread_queue q;
    const stream s = stream::adopt(q);
    const stream other;
    other.wait(s);
    auto held = make_latch();
    int value = 0;
    q.hold(held);
    q.put([&] { value = 7; });
    other.wait(s);  // would be implied by the first wait if no other code used the queue
    int seen = 0;
    const completion read = enqueue(other, {}, [&] { seen = value; });
    EXPECT_FALSE(read.done());
    held->open();
    read.synchronize();
    EXPECT_EQ(seen, 7);
}

TEST(S3, AnAdoptedStreamWaitsDeviceSideForOthers) {
    testing::gate held;
    const stream first;
    thread_queue q;
    const stream s = stream::adopt(q);
    held.hold(first);
    int value = 0;
    enqueue(first, {}, [&] { value = 1; });
    s.wait(first);  // does not block, or the gate would never open
    int seen = 0;
    q.put([&] { seen = value; });  // Weir does not see this either
    held.open();
    q.drain();
    EXPECT_EQ(seen, 1);
}

TEST(S3, DoneSaysWhetherTheOwnersWorkIsOverToo) {
    thread_queue q;
    const stream s = stream::adopt(q);
    auto held = make_latch();
    q.hold(held);
    EXPECT_FALSE(s.done());
    const int before = q.submitted;
    EXPECT_FALSE(s.done());
    EXPECT_EQ(q.submitted, before) << "asking puts nothing into the queue";
    held->open();
    while (!s.done()) {
        std::this_thread::yield();
    }
}

TEST(O1, HazardsAreOrderedAcrossAdoptedAndOwnStreams) {
    thread_queue q;
    const stream s = stream::adopt(q);
    const stream own;
    tracked x;
    auto held = make_latch();
    int value = 0;
    int seen = 0;
    q.hold(held);
    enqueue(s, {x.writes()}, [&] { value = 3; });
    const completion read = enqueue(own, {x.reads()}, [&] { seen = value; });
    enqueue(s, {x.writes()}, [&] { value = 4; });
    EXPECT_FALSE(read.done());
    held->open();
    s.synchronize();
    EXPECT_EQ(seen, 3);
    EXPECT_EQ(value, 4);
}

TEST(O4, AProgramThatUsesOneAdoptedStreamPaysOneTaskForAnOperation) {
    thread_queue q;
    const stream s = stream::adopt(q);
    tracked x;
    for (int i = 0; i < 100; ++i) {
        enqueue(s, {x.writes()}, [] {});
    }
    EXPECT_EQ(q.submitted, 100);
    s.synchronize();
}

TEST(C9, WaitingForTheDeviceWaitsForAdoptedStreamsAndTheirOwnersWork) {
    thread_queue q;
    const stream s = stream::adopt(q);
    auto held = make_latch();
    std::atomic<bool> ran{false};
    q.hold(held);
    q.put([&] { ran = true; });
    std::thread opener([&] { held->open(); });
    cpu().synchronize();
    EXPECT_TRUE(ran);
    opener.join();
}

TEST(O7, AGateOnAnAdoptedStreamHoldsWhatItsOwnerPutsThereLater) {
    thread_queue q;
    const stream s = stream::adopt(q);
    std::atomic<bool> ran{false};
    testing::gate held;
    held.hold(s);
    q.put([&] { ran = true; });
    EXPECT_FALSE(ran);
    held.open();
    q.drain();
    EXPECT_TRUE(ran);
}

TEST(S1, QueuesThatShareAThreadDoNotBlockEachOther) {
    const auto runner = std::make_shared<thread_queue>();
    shared_thread_queue q1(runner);
    shared_thread_queue q2(runner);
    const stream s1 = stream::adopt(q1);
    const stream s2 = stream::adopt(q2);
    tracked x;
    tracked y;
    std::vector<int> order;
    testing::gate held;
    held.hold(s1);
    enqueue(s1, {x.writes()}, [&] { order.push_back(1); });
    enqueue(s2, {x.writes(), y.writes()}, [&] { order.push_back(2); });  // waits; needs the thread for it
    enqueue(s1, {y.writes()}, [&] { order.push_back(3); });
    bool free = false;
    shared_thread_queue q3(runner);
    enqueue(stream::adopt(q3), {}, [&] { free = true; }).synchronize();
    EXPECT_TRUE(free) << "the thread is not held";
    held.open();
    s1.synchronize();
    s2.synchronize();
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(K4, AnOperationThatThrowsOnAnAdoptedStreamFailsAndTheQueueGoesOn) {
    thread_queue q;
    const stream s = stream::adopt(q);
    const completion bad = enqueue(s, {}, [] { throw std::runtime_error("no"); });
    bool ran = false;
    enqueue(s, {}, [&] { ran = true; });
    EXPECT_THROW(bad.synchronize(), operation_error);
    s.synchronize();
    EXPECT_TRUE(ran);
}

TEST(O2, AnOperationThatTheQueueRefusesFailsAndNothingHangs) {
    thread_queue q;
    const stream s = stream::adopt(q);
    auto token = std::make_shared<int>(1);
    enqueue(s, {}, [] {});
    q.refusals = 1;
    bool ran = false;
    const completion refused = enqueue(s, {}, [&ran, token] { ran = true; });
    EXPECT_TRUE(refused.done());
    EXPECT_THROW(refused.synchronize(), operation_error);
    EXPECT_FALSE(ran);
    EXPECT_EQ(token.use_count(), 1) << "what the operation owned is let go of";
    enqueue(s, {}, [&] { ran = true; }).synchronize();
    EXPECT_TRUE(ran);
}

TEST(O2, AWaitThatTheQueueRefusesIsOverWhenTheCallReturns) {
    thread_queue q;
    const stream s = stream::adopt(q);
    const stream other;
    bool ran = false;
    q.refusals = 1;
    enqueue(other, {}, [&] { ran = true; });
    s.wait(other.record());
    bool seen = false;
    q.put([&] { seen = ran; });
    q.drain();
    EXPECT_TRUE(seen);
}

TEST(S2, ARecordThatTheQueueRefusesIsAnError) {
    thread_queue q;
    const stream s = stream::adopt(q);
    q.refusals = 1;
    EXPECT_THROW(static_cast<void>(s.record()), operation_error);
    EXPECT_NO_THROW(s.synchronize());
}

}  // namespace
}  // namespace weir
