// Fork and join (scenario C7), on every device: gates, and what a stream finds when it runs.
#include "weir/parallel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/devices.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

/// Sets `to` from a host task, which streams of every device accept.
void put(const stream_ref& s, std::atomic<int>& to, int value) {
    host_task(s, [&to, value] { to = value; });
}

class Parallel : public ::testing::TestWithParam<const char*> {
protected:
    void SetUp() override {
        if (!why_not_.empty()) {
            GTEST_SKIP() << why_not_;
        }
    }

private:
    std::string why_not_;

protected:
    /// The CPU where there is no such device, and the test is skipped.
    device device_ = test::find_device(GetParam(), why_not_).value_or(cpu());
    stream launching_{device_};
};
INSTANTIATE_TEST_SUITE_P(Devices, Parallel, ::testing::Values("cpu", "sim:0", "cuda:0"));

TEST_P(Parallel, C7TheStreamsInheritWhatTheLaunchingStreamDidBefore) {
    std::atomic<int> before{0};
    std::vector<int> seen(3, -1);
    std::atomic<int> unordered{-1};
    const stream other(device_);
    {
        weir::testing::gate held;
        held.hold(launching_);
        put(launching_, before, 1);
        parallel blocks(3, launching_);
        for (std::size_t i = 0; i < 3; ++i) {
            host_task(blocks[i], [&, i] { seen[i] = before; });
        }
        // The control: a stream that is not forked off runs at once.
        host_task(other, [&] { unordered = before.load(); }).synchronize();
        EXPECT_EQ(unordered, 0);
        for (const stream& one : blocks) {
            EXPECT_FALSE(one.done());
        }
        held.open();
    }
    launching_.synchronize();
    EXPECT_THAT(seen, ::testing::Each(1));
}

TEST_P(Parallel, C7TheLaunchingStreamGoesOnAfterAllOfThem) {
    std::atomic<int> done{0};
    std::atomic<int> found{-1};
    weir::testing::gate held;
    {
        parallel blocks(2, launching_);
        held.hold(blocks[1]);
        host_task(blocks[0], [&] { ++done; });
        host_task(blocks[1], [&] { ++done; });
    }
    host_task(launching_, [&] { found = done.load(); });
    EXPECT_FALSE(launching_.done());
    held.open();
    launching_.synchronize();
    EXPECT_EQ(found, 2);
}

TEST_P(Parallel, TheLaunchingStreamRunsBesideThemUntilTheyAreJoined) {
    weir::testing::gate held;
    parallel blocks(1, launching_);
    held.hold(blocks[0]);
    host_task(blocks[0], [] {});
    host_task(launching_, [] {}).synchronize();  // would never end if it were ordered after the block
    EXPECT_FALSE(blocks[0].done());
    held.open();
    blocks.join();
    EXPECT_EQ(blocks.size(), 0U);
    blocks.join();
}

TEST_P(Parallel, TheStreamsRunBesideEachOther) {
    std::atomic<bool> ran{false};
    weir::testing::gate held;
    parallel blocks(2, launching_);
    held.hold(blocks[0]);
    host_task(blocks[0], [] {});
    host_task(blocks[1], [&] { ran = true; }).synchronize();
    EXPECT_TRUE(ran);
    held.open();
}

TEST_P(Parallel, TheNextForkOfAStreamTakesTheSameStreamsAndAnotherStreamOthers) {
    std::set<std::uint64_t> first;
    {
        const parallel blocks(2, launching_);
        for (const stream& one : blocks) {
            first.insert(one.unique_id());
        }
    }
    EXPECT_EQ(first.size(), 2U);
    {
        const parallel blocks(2, launching_);
        for (const stream& one : blocks) {
            EXPECT_TRUE(first.contains(one.unique_id()));
        }
    }
    const stream other(device_);
    const parallel blocks(2, other);
    for (const stream& one : blocks) {
        EXPECT_FALSE(first.contains(one.unique_id()));
    }
}

TEST_P(Parallel, AnExceptionJoinsAsWell) {
    std::atomic<int> done{0};
    std::atomic<int> found{-1};
    weir::testing::gate held;
    try {
        parallel blocks(1, launching_);
        held.hold(blocks[0]);
        put(blocks[0], done, 1);
        throw std::runtime_error("on the way");
    } catch (const std::runtime_error&) {
        host_task(launching_, [&] { found = done.load(); });
    }
    held.open();
    launching_.synchronize();
    EXPECT_EQ(found, 1);
}

TEST_P(Parallel, AStreamThatWasClosedIsJoinedAndNotTakenAgain) {
    std::atomic<int> done{0};
    std::atomic<int> found{-1};
    std::uint64_t closed = 0;
    weir::testing::gate held;
    {
        parallel blocks(1, launching_);
        held.hold(blocks[0]);
        put(blocks[0], done, 1);
        stream one = blocks[0];
        closed = one.unique_id();
        one.close();
    }
    host_task(launching_, [&] { found = done.load(); });
    EXPECT_FALSE(launching_.done());
    held.open();
    launching_.synchronize();
    EXPECT_EQ(found, 1);
    const parallel again(1, launching_);
    EXPECT_NE(again[0].unique_id(), closed);
}

TEST_P(Parallel, ALaunchingStreamThatIsClosedMeanwhileMakesTheEndWaitForTheStreams) {
    std::atomic<int> done{0};
    {
        const parallel blocks(1, launching_);
        put(blocks[0], done, 1);
        launching_.close();
    }
    EXPECT_EQ(done, 1);
    EXPECT_THROW(static_cast<void>(parallel(1, launching_)), state_error);
}

TEST(ParallelInline, RunsInTheCalls) {
    const stream launching(cpu_inline());
    std::atomic<int> done{0};
    {
        const parallel blocks(2, launching);
        put(blocks[0], done, 1);
        put(blocks[1], done, 2);
    }
    EXPECT_EQ(done, 2);
    EXPECT_EQ(parallel(0, launching).size(), 0U);
}

TEST(ParallelPool, KeepsOrderWithManyMoreStreamsThanThePoolKeeps) {
    const stream launching;
    std::atomic<int> done{0};
    {
        const parallel blocks(100, launching);
        for (const stream& one : blocks) {
            host_task(one, [&] { ++done; });
        }
    }
    std::atomic<int> found{0};
    host_task(launching, [&] { found = done.load(); }).synchronize();
    EXPECT_EQ(found, 100);
}

}  // namespace
}  // namespace weir
