#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/tracked.hpp"
#include "weir/detail/current_stream.hpp"
#include "weir/error.hpp"
#include "weir/testing.hpp"

namespace weir {
namespace {

using test::enqueue;
using test::tracked;
using testing::gate;

TEST(S1, AStreamRunsItsOperationsFirstInFirstOut) {
    const stream s;
    std::vector<int> order;
    for (int i = 0; i < 1000; ++i) {
        enqueue(s, {}, [&order, i] { order.push_back(i); });
    }
    s.synchronize();
    ASSERT_EQ(order.size(), 1000U);
    for (int i = 0; i < 1000; ++i) {
        ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
    }
}

TEST(S1, StreamsAreIndependentUnlessOrdered) {
    gate held;
    const stream first;
    const stream second;
    held.hold(first);
    std::atomic<bool> ran{false};
    const completion late = enqueue(first, {}, [] {});
    enqueue(second, {}, [&] { ran = true; }).synchronize();
    EXPECT_TRUE(ran);
    EXPECT_FALSE(late.done());
    held.open();
    late.synchronize();
}

// As a watchdog's report does, on each thread that waits.
TEST(Gate, SeveralThreadsMayOpenOne) {
    for (int round = 0; round < 50; ++round) {
        gate held;
        const stream s;
        held.hold(s);
        const completion late = enqueue(s, {}, [] {});
        EXPECT_FALSE(late.done());
        std::atomic<int> ready{0};
        const auto open_together = [&] {
            ++ready;
            while (ready < 2) {
            }
            held.open();
        };
        std::thread other(open_together);
        open_together();
        late.synchronize();
        other.join();
    }
}

// A worker lets a host that enqueues fast get ahead, but not for ever, even if no thread waits.
TEST(S1, OperationsRunThoughNothingWaitsForThem) {
    gate held;
    const stream first;
    const stream second;
    const stream never;
    held.hold(never);
    const completion control = enqueue(never, {}, [] {});
    tracked x;
    std::atomic<int> ran{0};
    completion last;
    for (int i = 0; i < 5000; ++i) {
        const bool alternately = i >= 2500;
        last = enqueue(alternately && i % 2 == 0 ? second : first, {x.writes()}, [&] { ++ran; });
    }
    while (!last.done()) {
        std::this_thread::yield();
    }
    EXPECT_EQ(ran, 5000);
    EXPECT_FALSE(control.done());
    held.open();
    control.synchronize();
}

TEST(S1, EnqueueingDoesNotWaitForOtherWork) {
    gate held;
    const stream s;
    held.hold(s);
    completion last;
    for (int i = 0; i < 100000; ++i) {  // far more than any queue of a fixed size would take
        last = enqueue(s, {}, [] {});
    }
    EXPECT_FALSE(last.done());
    held.open();
    last.synchronize();
}

TEST(S2, LaterWorkDoesNotChangeAnEvent) {
    gate held;
    const stream s;
    std::atomic<bool> ran{false};
    enqueue(s, {}, [&] { ran = true; });
    const event e = s.record();
    held.hold(s);
    const completion later = enqueue(s, {}, [] {});
    e.wait();  // would block if the event waited for the gate
    EXPECT_TRUE(ran);
    EXPECT_FALSE(later.done());
    held.open();
}

TEST(S2, RecordingAgainOverwritesAndAWaitTakesTheLastRecordBeforeIt) {
    gate first_held;
    gate second_held;
    const stream a;
    const stream b;
    const stream c;
    event e;
    first_held.hold(a);
    e.record(a);
    const completion behind_first = [&] {
        b.wait(e);
        return enqueue(b, {}, [] {});
    }();
    second_held.hold(a);
    e.record(a);
    c.wait(e);
    const completion behind_second = enqueue(c, {}, [] {});
    first_held.open();
    behind_first.synchronize();  // the second recording came after this wait
    EXPECT_FALSE(e.done()) << "it stands for the last record";
    EXPECT_FALSE(behind_second.done());
    second_held.open();
    behind_second.synchronize();
}

TEST(S2, WaitingForAnEventNeverRecordedIsNoWait) {
    const event never;
    EXPECT_TRUE(never.done());
    never.wait();
    const stream s;
    s.wait(never);
    enqueue(s, {}, [] {}).synchronize();
}

TEST(S3, AStreamsWaitIsDeviceSideAndHoldsBackWhatComesLater) {
    gate held;
    const stream producer;
    const stream consumer;
    held.hold(producer);
    int value = 0;
    enqueue(producer, {}, [&] { value = 42; });
    consumer.wait(producer);  // does not block, or the gate would never open
    int seen = 0;
    const completion read = enqueue(consumer, {}, [&] { seen = value; });
    EXPECT_FALSE(read.done());
    EXPECT_FALSE(consumer.done());
    held.open();
    read.synchronize();
    EXPECT_EQ(seen, 42);
}

TEST(S3, SynchronizeCoversAWaitThatHasNoOperationBehindIt) {
    gate held;
    const stream producer;
    const stream consumer;
    std::atomic<bool> ran{false};
    held.hold(producer);
    enqueue(producer, {}, [&] { ran = true; });
    consumer.wait(producer);
    EXPECT_FALSE(consumer.done());
    std::thread opens([&] { held.open(); });
    consumer.synchronize();
    EXPECT_TRUE(ran);
    opens.join();
}

TEST(S4, DroppingABusyStreamNeitherBlocksNorCancels) {
    gate held;
    std::atomic<int> ran{0};
    completion last;
    {
        const stream dropped;
        held.hold(dropped);
        for (int i = 0; i < 10; ++i) {
            last = enqueue(dropped, {}, [&] { ++ran; });
        }
    }
    EXPECT_EQ(ran, 0);
    held.open();
    last.synchronize();
    EXPECT_EQ(ran, 10);
}

TEST(S4, AClosedStreamRunsWhatItHasAndTakesNoMore) {
    gate held;
    stream s(cpu(), {.priority = 0, .name = "upload"});
    held.hold(s);
    std::atomic<bool> ran{false};
    const completion last = enqueue(s, {}, [&] { ran = true; });
    s.close();
    s.close();
    EXPECT_FALSE(s);
    try {
        enqueue(s, {}, [] {});
        FAIL() << "a closed stream took work";
    } catch (const state_error& refused) {
        EXPECT_NE(std::string(refused.what()).find("\"upload\" is closed"), std::string::npos) << refused.what();
    }
    EXPECT_THROW((void)s.record(), state_error);
    EXPECT_THROW(s.wait(last), state_error);
    held.open();
    last.synchronize();
    EXPECT_TRUE(ran);
}

TEST(S5, StreamsAreEqualOnlyToTheirOwnCopies) {
    const stream a;
    const stream copy = a;
    EXPECT_EQ(stream_ref(a), stream_ref(copy));
    std::uint64_t former = 0;
    {
        const stream gone;
        former = gone.unique_id();
    }
    const stream next;  // may get the timeline of the stream that is gone, but never its identity
    EXPECT_NE(next.unique_id(), former);
    EXPECT_NE(next.unique_id(), a.unique_id());
}

TEST(S7, TheCurrentStreamIsPerThreadNestsAndIsRestored) {
    const stream before = current_stream();
    const stream outer;
    const stream inner;
    {
        const use first(outer);
        EXPECT_EQ(current_stream(), outer);
        try {
            const use second(inner);
            EXPECT_EQ(current_stream(), inner);
            throw std::runtime_error("out");
        } catch (const std::runtime_error&) {
        }
        EXPECT_EQ(current_stream(), outer);
        std::thread([&] { EXPECT_EQ(current_stream(), before); }).join();
    }
    EXPECT_EQ(current_stream(), before);
}

TEST(S7, AScopeThatAThreadTakesUpAgainHoldsForAClosedStreamTooAndIsRestored) {
    const stream before = current_stream();
    const stream outer;
    stream closed;
    closed.close();
    EXPECT_THROW(const use refused(closed), state_error);
    EXPECT_EQ(current_stream(), before) << "what is refused changes nothing";
    {
        const use first(outer);
        {
            const detail::resumed_use second{closed};
            EXPECT_EQ(current_stream(), closed);
            EXPECT_THROW(static_cast<void>(current_stream().record()), state_error);
        }
        EXPECT_EQ(current_stream(), outer);
    }
    EXPECT_EQ(current_stream(), before);
}

TEST(S9, ObjectsPrintWhatTheyAre) {
    stream s(cpu(), {.priority = -1, .name = "load"});
    EXPECT_EQ(s.to_string(), "<weir.stream cpu #" + std::to_string(s.unique_id()) + " \"load\" priority=-1 owned>");
    s.close();
    EXPECT_NE(s.to_string().find("closed>"), std::string::npos);
}

TEST(C9, SynchronizingTheDeviceWaitsForEveryStream) {
    std::atomic<int> ran{0};
    std::vector<stream> streams(5);
    for (const stream& s : streams) {
        enqueue(s, {}, [&] { ++ran; });
    }
    cpu().synchronize();
    EXPECT_EQ(ran, 5);
}

TEST(HostTask, ABlockedTaskHoldsUpNothingButItsStream) {
    // More tasks than there are workers, all blocked on the program's own lock.
    std::mutex of_program;
    std::unique_lock taken(of_program);
    std::vector<stream> blocked(16);
    std::atomic<int> ran{0};
    for (const stream& s : blocked) {
        enqueue(
            s, {},
            [&] {
                const std::lock_guard lock(of_program);
                ++ran;
            },
            {}, runtime::work_kind::host_task);
    }
    const stream free;
    enqueue(free, {}, [] {}).synchronize();
    EXPECT_EQ(ran, 0);
    taken.unlock();
    for (const stream& s : blocked) {
        s.synchronize();
    }
    EXPECT_EQ(ran, 16);
}

TEST(HostTask, MayEnqueueWork) {
    const stream s;
    const stream other;
    std::atomic<bool> ran{false};
    enqueue(
        s, {}, [&] { enqueue(other, {}, [&] { ran = true; }); }, {}, runtime::work_kind::host_task)
        .synchronize();
    other.synchronize();
    EXPECT_TRUE(ran);
}

TEST(K4, AFailingOperationIsReportedWithLabelAndLineAndOtherStreamsGoOn) {
    const stream s;
    const completion failed = enqueue(s, {}, [] { throw std::runtime_error("disk on fire"); });
    const unsigned line = __LINE__ - 1;
    const stream other;
    enqueue(other, {}, [] {}).synchronize();
    try {
        s.synchronize();
        FAIL() << "the failure was swallowed";
    } catch (const operation_error& told) {
        ASSERT_TRUE(told.reason());
        EXPECT_THROW(std::rethrow_exception(told.reason()), std::runtime_error);
        EXPECT_EQ(told.label(), "test");
        EXPECT_EQ(told.where().line, line);
        const std::string message = told.what();
        EXPECT_NE(message.find("disk on fire"), std::string::npos) << message;
        EXPECT_NE(message.find("runtime_stream_test.cpp:" + std::to_string(line)), std::string::npos) << message;
    }
    s.synchronize();                                      // reported once
    EXPECT_THROW(failed.synchronize(), operation_error);  // the operation itself reports it to every caller
    enqueue(s, {}, [] {}).synchronize();
}

TEST(Threads, TenThousandBusyStreamsRunOnAFewWorkers) {
    gate held;
    constexpr int count = 10000;
    std::atomic<int> ran{0};
    std::vector<completion> ends;
    ends.reserve(count);
    for (int i = 0; i < count; ++i) {
        const stream s;
        held.hold(s);
        ends.push_back(enqueue(s, {}, [&] { ++ran; }));
    }
    EXPECT_EQ(ran, 0);
    held.open();
    for (const completion& end : ends) {
        end.synchronize();
    }
    EXPECT_EQ(ran, count);
}

}  // namespace
}  // namespace weir
