// How much memory the pool takes from the driver, and what it does if there is none (rules L1, L6).
#include <atomic>
#include <functional>
#include <random>
#include <thread>
#include <utility>

#include "backend/waiting_host.hpp"
#include "memory_support.hpp"

namespace weir::memory::test {
namespace {

using frontiers::point;

class L1Growth : public PoolTest {};

TEST_F(L1Growth, SmallArraysShareAChunk) {
    std::vector<block*> blocks;
    for (int i = 0; i < 1000; ++i) {
        blocks.push_back(&get(1 * kib, 1));
    }
    EXPECT_EQ(driver.calls, 1);
    for (block* b : blocks) {
        drop(*b);
    }
}

TEST_F(L1Growth, ChunksGrowWithThePool) {
    std::vector<block*> blocks;
    for (int i = 0; i < 1000; ++i) {
        blocks.push_back(&get(mib, 1));
    }
    EXPECT_LE(driver.calls, 30);
    EXPECT_LE(driver.held, 1250 * mib + pool::smallest_chunk);
    for (block* b : blocks) {
        drop(*b);
    }
}

TEST_F(L1Growth, PendingMemoryIsPassedOverUpTo125PercentOfThePeak) {
    driver.told = 1024 * mib;  // so that the floor, 64 MiB, is below the peak
    // Half of 128 MiB is live, the other half complete but in parts too small for the request.
    drop(get(128 * mib, 1));
    std::vector<block*> blocks;
    for (int i = 0; i < 16; ++i) {
        blocks.push_back(&get(8 * mib, 1));
    }
    ASSERT_EQ(driver.held, 128 * mib);
    for (std::size_t i = 0; i < blocks.size(); i += 2) {
        drop(*blocks[i]);
    }
    block& pending = get(16 * mib, 1);  // the peak stays 128 MiB
    EXPECT_EQ(driver.held, 160 * mib);
    use(pending, mark_at(1, 1));
    drop(pending);

    block& other = get(16 * mib, 2);
    EXPECT_EQ(driver.held, 160 * mib);
    EXPECT_TRUE(waits_of(other, 2).empty());
    block& third = get(16 * mib, 2);
    EXPECT_EQ(driver.held, 160 * mib) << "more than 1.25 times the peak: now the stream waits";
    EXPECT_EQ(waits_of(third, 2), (std::vector<point>{{1, 1}}));
    block& fourth = get(16 * mib, 2);
    EXPECT_EQ(driver.held, 176 * mib) << "no pending block is left: growing is better than waiting on the host";
    drop(other);
    drop(third);
    drop(fourth);
    for (std::size_t i = 1; i < blocks.size(); i += 2) {
        drop(*blocks[i]);
    }
}

/// A pool of 4 MiB of which half is live, the other half is free in parts of 256 KiB, and as much again is pending in one part.
class L1Floor : public PoolTest {
protected:
    void fragment() {
        std::vector<block*> holes;
        for (int i = 0; i < 16; ++i) {
            block& b = get(256 * kib, 1);
            (i % 2 == 0 ? holes : live).push_back(&b);
        }
        for (block* b : holes) {
            drop(*b);
        }
        block& pending = get(4 * mib, 1);
        use(pending, mark_at(1, 1));
        drop(pending);
        ASSERT_EQ(driver.held, 8 * mib);
    }
    void TearDown() override {
        for (block* b : live) {
            drop(*b);
        }
    }
    std::vector<block*> live;
};

TEST_F(L1Floor, ASmallPoolGrowsRatherThanHaveAStreamWait) {
    driver.told = 1024 * mib;
    fragment();
    block& other = get(320 * kib, 2);
    EXPECT_TRUE(waits_of(other, 2).empty());
    EXPECT_GT(driver.held, 8 * mib);
    drop(other);
}

TEST_F(L1Floor, TheFloorIsNeverAboveTheLimit) {
    tested.set_limit(8 * mib);
    fragment();
    block& other = get(320 * kib, 2);
    EXPECT_EQ(waits_of(other, 2), (std::vector<point>{{1, 1}}));
    EXPECT_EQ(driver.held, 8 * mib);
    drop(other);
}

TEST_F(L1Floor, OfALargeDeviceItIsThreePercent) {
    driver.told = 10000 * mib;  // 300 MiB
    drop(get(200 * mib, 1));
    // Free memory in parts that are too small, and one that is large enough and pending.
    block& low = get(48 * mib, 1);
    block& kept = get(4 * mib, 1);
    block& middle = get(48 * mib, 1);
    block& kept_too = get(4 * mib, 1);
    block& pending = get(64 * mib, 1);
    use(pending, mark_at(1, 1));
    drop(pending);
    drop(low);
    drop(middle);
    ASSERT_EQ(driver.held, 200 * mib);
    block& other = get(56 * mib, 2);  // 1.25 times the peak are 250 MiB
    EXPECT_TRUE(waits_of(other, 2).empty());
    EXPECT_LE(driver.held, 300 * mib);
    drop(other);
    drop(kept);
    drop(kept_too);
}

/// Memory is short: two streams still use what is free.
class L1Ends : public PoolTest {
protected:
    void SetUp() override {
        tested.set_limit(4 * mib);
        first = &get(2 * mib, 1);
        second = &get(2 * mib, 3);
        use(*first, mark_at(1, 1));
        use(*second, mark_at(3, 1));
    }
    block* first = nullptr;
    block* second = nullptr;
};

TEST_F(L1Ends, OfPendingBlocksTheOneWithAnEndOfItsOwnIsPreferred) {
    completed.make_late({1, 1});
    drop(*first);
    drop(*second);
    block& taken = get(2 * mib, 2);
    EXPECT_EQ(waits_of(taken, 2), (std::vector<point>{{3, 1}})) << "though the other one is free for longer";
    EXPECT_EQ(tested.stats().over_waited, 0U);
    drop(taken);
}

TEST_F(L1Ends, ABlockWithoutAnEndOfItsOwnIsTakenAtTheLimitAloneAndCounted) {
    completed.make_late({1, 1});
    drop(*first);
    tested.set_limit(6 * mib);
    block& grown = get(2 * mib, 2);
    EXPECT_TRUE(waits_of(grown, 2).empty());
    EXPECT_EQ(driver.held, 6 * mib);
    EXPECT_EQ(tested.stats().over_waited, 0U);
    block& late = get(2 * mib, 2);
    EXPECT_EQ(waits_of(late, 2), (std::vector<point>{{1, 1}}));
    EXPECT_EQ(tested.stats().over_waited, 1U);
    drop(grown);
    drop(late);
    drop(*second);
}

TEST_F(L1Ends, TheHostDoesNotWaitForWhatItSaysItDoesNotWaitFor) {
    drop(*first);
    drop(*second);
    const order::clock nothing;
    EXPECT_EQ(tested.take(4 * mib, {2, nothing}).wait_for, (point{1, 1}));
    const std::vector<point> one{{1, 1}};
    EXPECT_EQ(tested.take(4 * mib, {2, nothing}, one).wait_for, (point{3, 1}));
    const std::vector<point> both{{1, 1}, {3, 1}};
    const pool::answer none = tested.take(4 * mib, {2, nothing}, both);
    EXPECT_EQ(none.taken, nullptr);
    EXPECT_EQ(none.wait_for, std::nullopt);
}

TEST_F(L1Growth, CompleteChunksAreGivenBackBeforeMoreAreTaken) {
    tested.set_limit(8 * mib);
    drop(get(4 * mib, 1));
    drop(get(6 * mib, 1));  // 4 and 6 exceed the limit
    EXPECT_LE(driver.held, 8 * mib);
    drop(get(8 * mib, 1));
    EXPECT_EQ(driver.held, 8 * mib);
}

TEST_F(L1Growth, ManyFreedBlocksReachOtherStreams) {
    std::vector<block*> blocks;
    for (int i = 0; i < 20000; ++i) {
        blocks.push_back(&get(256, 1));
    }
    for (block* b : blocks) {
        drop(*b);
    }
    const std::size_t held = driver.held;
    drop(get(mib, 2));
    EXPECT_EQ(driver.held, held);
}

class L6Memory : public PoolTest {};

TEST_F(L6Memory, StatisticsSayWhereTheBytesAre) {
    EXPECT_EQ(tested.stats().live, 0U);
    block& a = get(1000, 1);
    block& b = get(mib, 1);
    statistics now = tested.stats();
    EXPECT_EQ(now.live, mib + 1024);
    EXPECT_EQ(now.pending, 0U);
    EXPECT_EQ(now.cached, mib - 1024);
    EXPECT_EQ(now.peak, mib + 1024);
    EXPECT_EQ(now.limit, std::size_t{1} << 40);
    use(b, mark_at(1, 1));
    drop(b);
    now = tested.stats();
    EXPECT_EQ(now.live, 1024U);
    EXPECT_EQ(now.pending, mib);
    completed.set(1, 1);
    now = tested.stats();
    EXPECT_EQ(now.pending, 0U);
    EXPECT_EQ(now.cached, 2 * mib - 1024);
    drop(a);
    EXPECT_EQ(tested.stats().cached, 2 * mib);
    EXPECT_EQ(tested.stats().peak, mib + 1024);
}

TEST_F(L6Memory, TrimGivesCompleteChunksBackAndNeverPendingOnes) {
    block& a = get(2 * mib, 1);
    block& b = get(2 * mib, 1);
    use(b, mark_at(1, 1));
    drop(a);
    drop(b);
    tested.trim();
    EXPECT_EQ(driver.held, 2 * mib);
    EXPECT_EQ(tested.stats().pending, 2 * mib);
    completed.set(1, 1);
    tested.trim();
    EXPECT_EQ(driver.held, 0U);
    EXPECT_EQ(tested.stats().cached, 0U);
}

TEST_F(L6Memory, TheLimitCountsLiveCachedAndPendingBytes) {
    tested.set_limit(4 * mib);
    block& live = get(2 * mib, 1);
    block& pending = get(2 * mib, 1);
    use(pending, mark_at(1, 1));
    drop(pending);
    EXPECT_EQ(ask(3 * mib, 2), nullptr);
    EXPECT_EQ(wait_for, (point{1, 1}));
    completed.set(1, 1);
    EXPECT_EQ(ask(3 * mib, 2), nullptr);
    EXPECT_EQ(wait_for, std::nullopt) << "nothing is pending any more";
    EXPECT_LE(driver.held, 4 * mib);
    drop(live);
    drop(get(4 * mib, 2));
}

/// All work completes while the pool looks, once it has asked a number of times.
class overtaking_watermarks final : public order::watermarks {
public:
    explicit overtaking_watermarks(int after) : left_(after) {}
    [[nodiscard]] order::epoch completed(frontiers::timeline_id /*timeline*/) const noexcept override {
        return left_-- > 0 ? 0 : 100;
    }
    /// Whether everything is complete.
    [[nodiscard]] bool over() const { return left_ < 0; }

private:
    mutable int left_;
};

TEST(L6Overtaken, WhatGetsOverWhileThePoolLooksIsEnoughOrToBeWaitedFor) {
    int while_it_looked = 0;
    for (int asked = 0;; ++asked) {
        fake_driver driver;
        overtaking_watermarks completed(asked);
        pool tested(driver, completed);
        tested.set_limit(4 * mib);
        block* const whole = tested.take(4 * mib, {1, nullptr}).taken;
        ASSERT_NE(whole, nullptr);
        tested.put(*whole);
        // Two halves that cannot be compared: another stream used each last.
        block* const low = tested.take(2 * mib, {1, nullptr}).taken;
        block* const high = tested.take(2 * mib, {2, nullptr}).taken;
        ASSERT_TRUE(low != nullptr && high != nullptr);
        for (const auto& [half, line] : {std::pair(low, 1U), std::pair(high, 2U)}) {
            half->history.reserve(1);
            half->history.record({0, half->size()}, order::access_mode::write, mark_at(line, 1), completed);
            tested.put(*half);
        }
        const bool was_over = completed.over();
        const pool::answer got = tested.take(4 * mib, {3, nullptr});
        ASSERT_TRUE(got.taken != nullptr || got.wait_for) << "out of memory, if all gets over at question " << asked;
        while_it_looked += !was_over && completed.over() ? 1 : 0;
        if (got.taken != nullptr) {
            tested.put(*got.taken);
        } else if (!completed.over()) {
            break;  // fewer queries than that were made
        }
    }
    EXPECT_GT(while_it_looked, 5);
}

TEST_F(L6Memory, ALimitThatIsNoClassCanBeUsedUp) {
    tested.set_limit(1100 * kib);
    drop(get(1100 * kib, 1));
}

TEST_F(L6Memory, MoreThanTheLimitIsRefusedWithoutDisturbingAnything) {
    block& a = get(mib, 1);
    EXPECT_EQ(ask(std::size_t{1} << 41, 1), nullptr);
    EXPECT_EQ(ask(~std::size_t{0}, 1), nullptr);
    EXPECT_EQ(wait_for, std::nullopt);
    EXPECT_EQ(driver.calls, 1);
    drop(a);
}

TEST_F(L6Memory, TheMessageNamesTheSizes) {
    tested.set_limit(4 * mib);
    block& live = get(2 * mib, 1);
    block& pending = get(mib, 1);
    use(pending, mark_at(1, 1));
    drop(pending);
    const std::string message = tested.explain_shortage(5000000);
    for (const char* part : {"5000000 bytes wanted", "2097152 bytes are live", "1048576 bytes pending", "cached",
                             "the limit is 4194304 bytes", "the device has 1099511627776 bytes", "on fake"}) {
        EXPECT_NE(message.find(part), std::string::npos) << message;
    }
    drop(live);
}

TEST_F(L6Memory, WhenTheDriverHasLessThanAChunkTheRequestAloneIsTried) {
    driver.total = 3 * mib;
    block& a = get(2 * mib, 1);
    block& b = get(512 * kib, 1);
    EXPECT_EQ(driver.held, 2 * mib + 512 * kib);
    drop(a);
    drop(b);
}

/// A program that allocates, uses and drops at random on three streams, while the driver fails at call `fail_at`.
void run_program(int fail_at) {
    fake_driver driver;
    set_watermarks completed;
    {
        pool tested(driver, completed);
        driver.fail_at = fail_at;
        tested.set_limit(64 * mib);
        std::mt19937 random(7);
        std::vector<block*> live;
        std::vector<frontiers::epoch> tail(4, 0);
        for (int step = 0; step < 400; ++step) {
            const auto line = static_cast<frontiers::timeline_id>(1 + random() % 3);
            if (random() % 2 == 0 || live.empty()) {
                const std::size_t bytes = (1 + random() % 64) * 100 * kib;
                block* b = tested.take_recent(bytes, line);
                for (bool again = b == nullptr; again;) {
                    const pool::answer answer = tested.take(bytes, {line, nullptr});
                    b = answer.taken;
                    again = b == nullptr && answer.wait_for.has_value();
                    if (again) {
                        completed.set(answer.wait_for->timeline, answer.wait_for->at);
                    }
                }
                if (b != nullptr) {
                    b->history.reserve(1);
                    b->history.record({0, bytes}, order::access_mode::write, mark_at(line, ++tail[line]), completed);
                    live.push_back(b);
                }
            } else {
                const std::size_t which = random() % live.size();
                tested.put(*live[which]);
                live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
            }
            const statistics now = tested.stats();
            ASSERT_EQ(now.live + now.pending + now.cached, driver.held);
            ASSERT_LE(driver.held, 64 * mib);
        }
        for (block* b : live) {
            tested.put(*b);
        }
        EXPECT_EQ(tested.stats().live, 0U);
        for (frontiers::timeline_id line = 1; line <= 3; ++line) {
            completed.set(line, tail[line]);
        }
        // Nothing was lost: all of it is one whole again, and can be used.
        tested.trim();
        EXPECT_EQ(driver.held, 0U);
        const pool::answer all = tested.take(64 * mib, {1, nullptr});
        ASSERT_NE(all.taken, nullptr);
        tested.put(*all.taken);
    }
    EXPECT_EQ(driver.held, 0U);
}

/// Lets other threads run in the middle of a call.
class busy_driver final : public weir::test::fake_driver {
public:
    std::function<void()> meanwhile;

    backend::memory_chunk allocate(std::size_t bytes) noexcept override {
        const auto memory = fake_driver::allocate(bytes);
        call();
        return memory;
    }
    void deallocate(backend::memory_chunk memory, std::size_t bytes) noexcept override {
        fake_driver::deallocate(memory, bytes);
        call();
    }

private:
    void call() {
        if (const auto once = std::exchange(meanwhile, nullptr)) {
            once();
        }
    }
};

/// Asks for 256 bytes while another thread is in the driver, which may give no more than one chunk.
bool is_served_beside_another(bool gives_back) {
    busy_driver driver;
    set_watermarks completed;
    pool tested(driver, completed);
    tested.set_limit(pool::smallest_chunk);
    std::atomic<bool> asks{false};
    block* taken = nullptr;
    std::thread other;
    const auto ask = [&] {
        other = std::thread([&] {
            asks = true;
            taken = tested.take(256, {2, nullptr}).taken;
        });
        while (!asks) {
            std::this_thread::yield();
        }
        for (int i = 0; i < 10; ++i) {  // not necessary for the answer, but makes it harder
            std::this_thread::yield();
        }
    };
    if (gives_back) {
        tested.put(*tested.take(256, {1, nullptr}).taken);
        driver.meanwhile = ask;
        tested.trim();
    } else {
        driver.meanwhile = ask;
        tested.put(*tested.take(256, {1, nullptr}).taken);
    }
    other.join();
    if (taken != nullptr) {
        tested.put(*taken);
    }
    return taken != nullptr;
}

TEST(L6, AThreadThatGivesBackWaitsForWhatAnotherGivesBack) {
    busy_driver driver;
    set_watermarks completed;
    pool tested(driver, completed);
    block* const dropped = tested.take(256, {1, nullptr}).taken;
    ASSERT_NE(dropped, nullptr);
    tested.put(*dropped);
    std::atomic<bool> over{false};
    std::thread other;
    driver.meanwhile = [&] {
        other = std::thread([&] {
            tested.give_back();
            over = true;
        });
        while (!over && !backend::waiting_host::any()) {
            std::this_thread::yield();
        }
        EXPECT_FALSE(over);
    };
    tested.trim();
    other.join();
}

TEST(L6, AnAnswerSaysWhetherTheDriverOrTheLimitIsInTheWay) {
    fake_driver driver;
    set_watermarks completed;
    pool tested(driver, completed);
    driver.total = mib;
    EXPECT_TRUE(tested.take(2 * mib, {1, nullptr}).driver_refused);
    tested.set_limit(mib);
    EXPECT_FALSE(tested.take(2 * mib, {1, nullptr}).driver_refused);
}

TEST(L6, MemoryThatAnotherThreadBringsFromTheDriverOrBackIsNotGone) {
    for (int i = 0; i < 50; ++i) {
        ASSERT_TRUE(is_served_beside_another(false)) << "it brings some, time " << i;
        ASSERT_TRUE(is_served_beside_another(true)) << "it gives some back, time " << i;
    }
}

TEST(L6, NothingIsLostWhereverTheDriverFails) {
    for (int fail_at = 0; fail_at < 40; ++fail_at) {
        SCOPED_TRACE(fail_at);
        run_program(fail_at);
    }
}

}  // namespace
}  // namespace weir::memory::test
