// The events of one driver stream: which one a waiter gets, and when an event is used again.
#include "backend/cuda/streams/driver_stream_events.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <vector>

#include "unit/cuda_support.hpp"

namespace weir::test {
namespace {

constexpr std::size_t few = gpu::driver_stream_events::few;

class CudaStreamEvents : public ::testing::Test {
protected:
    ~CudaStreamEvents() override = default;

    /// Adds a recorded event: one that is used again, or a new one.
    void record(backend::epoch at, bool is_pinned = false) {
        if (gpu::pooled_event* const again = events.next(at, is_pinned)) {
            gpu::driver_stream_events::was_recorded(*again);
        } else {
            events.add({at, pool.take(), is_pinned});
        }
    }
    void record_until(backend::epoch last) {
        for (backend::epoch at = 1; at <= last; ++at) {
            record(at);
        }
    }
    /// The epoch behind which the event stands that a waiter for `at` gets; 0 if there is none.
    [[nodiscard]] backend::epoch behind(backend::epoch at) const {
        const gpu::driver_stream_events::recorded* const found = events.behind(at);
        return found == nullptr ? 0 : found->at;
    }

    gpu::event_pool pool{cuda_context(), gpu::event_disable_timing};
    gpu::driver_stream_events events;
};

TEST_F(CudaStreamEvents, AWaiterGetsTheFirstThatStandsBehind) {
    EXPECT_EQ(behind(1), 0U);
    record(2);
    record(5);
    EXPECT_EQ(behind(1), 2U);
    EXPECT_EQ(behind(2), 2U);
    EXPECT_EQ(behind(3), 5U);
    EXPECT_EQ(behind(6), 0U);
    events.drop_until(4);
    EXPECT_EQ(behind(1), 5U);
}

TEST_F(CudaStreamEvents, InTheLongRunNoneAreMade) {
    record_until(1000);
    const std::size_t made = pool.size();
    EXPECT_LE(made, few + 1);
    events.drop_until(990);
    for (backend::epoch at = 1001; at < 2000; ++at) {
        record(at);
        events.drop_until(at - at % 7);
    }
    EXPECT_EQ(pool.size(), made);
}

TEST_F(CudaStreamEvents, OfManyTheOldestAndTheLatestStay) {
    record_until(100);
    EXPECT_EQ(behind(1), 1U) << "so that progress is seen";
    EXPECT_EQ(behind(100), 100U);
    EXPECT_GT(behind(2), 100U - few);
    std::size_t kept = 0;
    for (backend::epoch at = 1; behind(at) != 0; at = behind(at) + 1) {
        ++kept;
    }
    EXPECT_GE(kept, few / 2);
    EXPECT_LE(kept, few);
    EXPECT_EQ(behind(98), 98U) << "the last ones all";
}

TEST_F(CudaStreamEvents, PinnedOnesAreNeverLeftOut) {
    for (backend::epoch at = 1; at <= 40; ++at) {
        record(at, at % 10 == 0);
    }
    for (const backend::epoch at : std::initializer_list<backend::epoch>{10, 20, 30, 40}) {
        EXPECT_EQ(behind(at), at);
    }
    for (backend::epoch at = 41; at <= 60; ++at) {
        record(at, true);
    }
    for (backend::epoch at = 41; at <= 60; ++at) {
        EXPECT_EQ(behind(at), at);
    }
}

TEST_F(CudaStreamEvents, OneThatIsNotRecordedYetIsNotHandedOut) {
    record_until(20);
    gpu::pooled_event* const again = events.next(21, false);
    ASSERT_NE(again, nullptr);
    EXPECT_EQ(behind(21), 0U);
    EXPECT_EQ(behind(20), 20U);
    EXPECT_FALSE(events.cover(21, false));
    EXPECT_FALSE(events.last().event);
    record(22);
    EXPECT_EQ(behind(21), 22U) << "another one will do";
    events.drop_until(22);
    EXPECT_FALSE(events.empty()) << "a thread has it in hand";
    gpu::driver_stream_events::was_recorded(*again);
    EXPECT_EQ(behind(21), 21U);
    EXPECT_EQ(behind(21) == 21U ? events.behind(21)->event.handle() : nullptr, again->handle);
    events.drop_until(22);
    EXPECT_TRUE(events.empty());
}

TEST_F(CudaStreamEvents, OneThatIsNotRecordedIsNotLeftOut) {
    record_until(20);
    std::vector<gpu::pooled_event*> in_hand;
    std::set<gpu::event_handle> handles;
    for (backend::epoch at = 21; gpu::pooled_event* const again = events.next(at, false); ++at) {
        in_hand.push_back(again);
        handles.insert(again->handle);
        ASSERT_LT(at, 40U) << "then one is out twice";
    }
    EXPECT_GT(in_hand.size(), 3U);
    EXPECT_EQ(handles.size(), in_hand.size());
    record(50);
    for (gpu::pooled_event* const one : in_hand) {
        gpu::driver_stream_events::was_recorded(*one);
    }
    EXPECT_EQ(behind(21), 21U);
    EXPECT_EQ(behind(50), 50U);
}

TEST_F(CudaStreamEvents, WhatCouldNotBeRecordedIsForgotten) {
    record_until(20);
    const std::size_t made = pool.size();
    gpu::pooled_event* const again = events.next(21, false);
    ASSERT_NE(again, nullptr);
    record(22);
    events.forget(*again);
    EXPECT_EQ(behind(21), 22U);
    EXPECT_EQ(behind(20), 20U);
    for (backend::epoch at = 23; at < 60; ++at) {
        record(at);
    }
    EXPECT_LE(pool.size(), made + 1) << "and its event is used again";
    EXPECT_EQ(behind(59), 59U);
}

TEST_F(CudaStreamEvents, OneThatAThreadHasInHandIsNotUsedAgain) {
    record_until(20);
    const gpu::event_ref waited_for = events.behind(20)->event;
    for (backend::epoch at = 21; at < 60; ++at) {
        record(at);
        EXPECT_NE(events.behind(at)->event.handle(), waited_for.handle()) << at;
    }
}

TEST_F(CudaStreamEvents, MoreAreKeptWhereThatIsAskedFor) {
    const std::size_t most = gpu::driver_stream_events::most;
    const std::size_t last = 3 * most;
    std::size_t latest = few / 2 - 1;  // at least this many of the latest stay
    for (int more = 0; more < 10; ++more) {
        record_until(last);
        EXPECT_EQ(behind(last + 1 - latest), last + 1 - latest) << "the last ones all";
        EXPECT_EQ(behind(1), 1U);
        EXPECT_GT(behind(2), last - 2 * latest - 2) << "and no more than need be";
        events.keep_more();
        EXPECT_EQ(behind(last), last) << "nothing is lost";
        EXPECT_EQ(behind(1), 1U);
        latest = std::min(2 * latest + 1, most / 2 - 1);
        events.drop_until(last);
    }
    EXPECT_EQ(latest, most / 2 - 1);
    EXPECT_LE(pool.size(), most + 1);
}

TEST_F(CudaStreamEvents, OfThoseThatAreOverTheLastOneStays) {
    record_until(6);
    events.are_over(4);
    EXPECT_EQ(behind(1), 4U) << "so who waits for an earlier one does not wait for one that is not over";
    EXPECT_EQ(behind(5), 5U);
    EXPECT_TRUE(events.is_over(4));
    EXPECT_FALSE(events.is_over(5));
}

TEST_F(CudaStreamEvents, APinnedOneCoversWhatIsBeforeIt) {
    EXPECT_FALSE(events.cover(1, true));
    record(3);
    EXPECT_FALSE(events.cover(4, true));
    EXPECT_TRUE(events.cover(3, true));
    for (backend::epoch at = 4; at < 40; ++at) {
        record(at);
    }
    EXPECT_EQ(behind(3), 3U) << "a mark now";
}

}  // namespace
}  // namespace weir::test
