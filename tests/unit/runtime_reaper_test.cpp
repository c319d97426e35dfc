// Retired objects are released exactly once, when their last point is complete and not before, on one thread (rule L4).
#include "runtime/lifetime/reaper.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "weir/weir.hpp"

namespace weir::runtime {
namespace {

using testing::gate;

const backend::timeline_table& timelines() { return backend::timeline_table::instance(); }

/// Counts how often it was released, and checks whether all of its points were complete then.
class item final : public retired {
public:
    explicit item(std::vector<completion> after = {}) : after_(std::move(after)) {}

    std::optional<frontiers::point> pending() noexcept override {
        ++asked;
        for (const completion& one : after_) {
            if (const frontiers::point point{one.timeline(detail::key), one.epoch(detail::key)};
                !timelines().is_complete(point)) {
                return point;
            }
        }
        return std::nullopt;
    }
    void release() noexcept override {
        if (pending()) {
            ++early;
        }
        by = std::this_thread::get_id();
        ++released;
        if (then) {
            then();
        }
    }

    std::function<void()> then;
    std::atomic<int> asked{0};  ///< how often the reaper asked it what it waits for
    std::atomic<int> released{0};
    std::atomic<int> early{0};
    std::thread::id by;

private:
    std::vector<completion> after_;
};

class L4Reaper : public ::testing::Test {
protected:
    L4Reaper() { reaper::start(); }
};

TEST_F(L4Reaper, LetsGoWhenTheLastPointIsOverAndNotBefore) {
    const stream a;
    const stream b;
    gate first;
    gate second;
    first.hold(a);
    second.hold(b);
    item held({access(a, [](native_stream) {}), access(b, [](native_stream) {})});
    item free;
    reaper::push(held);
    reaper::push(free);
    while (reaper::held() != 1) {
        std::this_thread::yield();
    }
    EXPECT_EQ(free.released, 1);
    first.open();
    while (held.asked < 2) {
        std::this_thread::yield();
    }
    // The thread that asked has finished with it once it releases an object that was retired later.
    item behind;
    reaper::push(behind);
    while (behind.released == 0) {
        std::this_thread::yield();
    }
    EXPECT_EQ(held.released, 0) << "one of its points is not over";
    second.open();
    reaper::wait_until_empty();
    EXPECT_EQ(held.released, 1);
    EXPECT_EQ(held.early, 0);
    EXPECT_EQ(held.by, free.by) << "one thread does it";
    EXPECT_NE(held.by, std::this_thread::get_id());
    EXPECT_EQ(reaper::leaked(), 0U);
}

TEST_F(L4Reaper, WhatWaitsInItsTimelineGoesTheSameWay) {
    const stream a;
    gate closed;
    closed.hold(a);
    item held({access(a, [](native_stream) {})});
    reaper::push_when_over(held);
    EXPECT_EQ(reaper::held(), 1U);
    EXPECT_EQ(held.released, 0);
    closed.open();
    reaper::wait_until_empty();
    EXPECT_EQ(held.released, 1);
    EXPECT_EQ(held.early, 0);
}

TEST_F(L4Reaper, AReleaseMayRetireMoreAndMayEnqueueWork) {
    const stream a;
    gate closed;
    item last;
    item middle;
    completion enqueued;
    middle.then = [&] {
        enqueued = access(a, [](native_stream) {});
        reaper::push(last);
    };
    closed.hold(a);
    item first({access(a, [](native_stream) {})});
    first.then = [&] { reaper::push(middle); };
    reaper::push(first);
    EXPECT_EQ(last.released, 0);
    closed.open();
    reaper::wait_until_empty();
    EXPECT_EQ(first.released, 1);
    EXPECT_EQ(middle.released, 1);
    EXPECT_EQ(last.released, 1);
    enqueued.synchronize();
}

TEST_F(L4Reaper, AThreadThatAsksForItReleasesWhatIsDue) {
    bool was_here = false;
    for (int tries = 0; tries < 10'000 && !was_here; ++tries) {  // the reaper's own thread may be first
        item due;
        reaper::push(due);
        reaper::release_due();
        reaper::wait_until_empty();
        EXPECT_EQ(due.released, 1);
        was_here = due.by == std::this_thread::get_id();
    }
    EXPECT_TRUE(was_here);
}

TEST_F(L4Reaper, WhatIsNotDueStaysAndAReleaseReleasesNothingElse) {
    const stream a;
    gate closed;
    closed.hold(a);
    item held({access(a, [](native_stream) {})});
    item inner;
    item outer;
    bool was_within = false;
    outer.then = [&] {
        reaper::push(inner);
        reaper::release_due();
        reaper::drain();  // would wait for itself
        was_within = inner.released != 0;
    };
    reaper::push(held);
    reaper::push(outer);
    while (inner.released == 0) {
        reaper::release_due();
        std::this_thread::yield();
    }
    EXPECT_FALSE(was_within) << "releases run one after the other";
    EXPECT_EQ(held.released, 0);
    closed.open();
    reaper::wait_until_empty();
    EXPECT_EQ(held.released, 1);
    EXPECT_EQ(held.early, 0);
}

TEST_F(L4Reaper, WhileOneThreadReleasesNoOtherOneDoes) {
    std::atomic<bool> may_end{false};
    item slow;
    slow.then = [&] {
        while (!may_end) {
            std::this_thread::yield();
        }
    };
    reaper::push(slow);
    while (slow.released == 0) {
        std::this_thread::yield();
    }
    item other;
    reaper::push(other);
    reaper::release_due();
    EXPECT_EQ(other.released, 0);
    may_end = true;
    reaper::wait_until_empty();
    EXPECT_EQ(other.released, 1);
}

TEST_F(L4Reaper, ADrainWaitsForWhatAnotherThreadReleases) {
    std::atomic<bool> may_end{false};
    std::atomic<bool> is_drained{false};
    item slow;
    slow.then = [&] {
        while (!may_end) {
            std::this_thread::yield();
        }
    };
    reaper::push(slow);
    std::thread releases([] { reaper::release_due(); });  // this thread, or the reaper's
    while (slow.released == 0) {
        std::this_thread::yield();
    }
    std::thread drains([&] {
        reaper::drain();
        is_drained = true;
    });
    // What the drain waits for is in the list, behind the object that is being released; or it has returned, which is too early.
    while (reaper::held() < 2 && !is_drained) {
        std::this_thread::yield();
    }
    EXPECT_FALSE(is_drained);
    may_end = true;
    drains.join();
    releases.join();
    reaper::wait_until_empty();
}

/// Eight threads retire objects that wait for work of four streams, while that work runs. Half of them release, too.
TEST_F(L4Reaper, UnderLoadFromEightThreadsEachGoesOnceAndNoneEarly) {
    constexpr int each = 400;
    const std::vector<stream> streams(4);
    std::array<std::vector<std::unique_ptr<item>>, 8> items;
    std::vector<std::thread> threads;
    for (unsigned id = 0; id < items.size(); ++id) {
        threads.emplace_back([&, id] {
            std::mt19937 random(id);
            for (int i = 0; i < each; ++i) {
                std::vector<completion> after;
                for (unsigned points = random() % 4; points > 0; --points) {
                    after.push_back(access(streams[random() % streams.size()], [](native_stream) {}));
                }
                item& one = *items[id].emplace_back(std::make_unique<item>(std::move(after)));
                if (i % 2 == 0) {
                    reaper::push(one);
                } else {
                    reaper::push_when_over(one);
                }
                if (id % 2 == 0) {
                    reaper::release_due();
                }
            }
        });
    }
    for (std::thread& one : threads) {
        one.join();
    }
    reaper::wait_until_empty();
    for (const auto& of_one_thread : items) {
        for (const auto& one : of_one_thread) {
            ASSERT_EQ(one->released, 1);
            ASSERT_EQ(one->early, 0);
        }
    }
}

/// A process that ends while `held` objects wait for a gate that never opens. It exits with 100 plus the number of objects left.
/// Any other status: it released an object in use.
[[noreturn]] void end_with_pending_items(int held) {
    static int released = 0;
    // Registered first, so that it runs last.
    std::atexit([] { std::_Exit(released == 0 ? 100 + static_cast<int>(reaper::leaked()) : 1); });
    struct note {
        note() = default;
        note(const note&) = delete;
        note& operator=(const note&) = delete;
        ~note() { ++released; }
    };
    reaper::start();
    const stream s;
    static std::array<double, 8> lent{};
    auto* const closed = new gate;  // NOLINT(cppcoreguidelines-owning-memory): is never opened
    closed->hold(s);
    const event never = s.record();
    for (int i = 1; i < held; ++i) {
        keep_alive(never, std::make_unique<note>());
    }
    array x(buffer::wrap(lent.data(), sizeof(lent), cpu(), [] { ++released; }), dtype::float64, 8);
    fill(s, x, 1);
    x = {};
    std::exit(0);
}

TEST(L4ReaperDeathTest, TheExitOfTheProcessWaitsForNothingAndCountsWhatLeaks) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(end_with_pending_items(3), ::testing::ExitedWithCode(103), "");
    ::setenv("WEIR_LOG", "debug", 1);
    EXPECT_EXIT(end_with_pending_items(2), ::testing::ExitedWithCode(102), "2 objects in use at the exit");
    ::unsetenv("WEIR_LOG");
}

}  // namespace
}  // namespace weir::runtime
