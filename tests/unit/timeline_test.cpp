#include "backend/timeline.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace weir::backend {
namespace {

struct counting final : waiter {
    std::atomic<int> told{0};
    void reached() noexcept override { ++told; }
};

TEST(Timeline, TellsAWaiterOnceItsEpochIsOver) {
    timeline line;
    counting first;
    counting second;
    ASSERT_TRUE(line.wait(first, 2));
    ASSERT_TRUE(line.wait(second, 3));
    line.complete(1);
    EXPECT_EQ(first.told, 0);
    line.complete(2);
    EXPECT_EQ(first.told, 1);
    EXPECT_EQ(second.told, 0);
    line.complete(5);
    EXPECT_EQ(first.told, 1);
    EXPECT_EQ(second.told, 1);
}

TEST(Timeline, TellsWaitersWhateverTheOrderInWhichTheyCame) {
    timeline line;
    std::vector<counting> waiters(6);
    const std::vector<epoch> wanted{4, 2, 5, 1, 3, 2};
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        ASSERT_TRUE(line.wait(waiters[i], wanted[i]));
    }
    const auto told = [&] {
        std::vector<int> counts;
        for (const counting& one : waiters) {
            counts.push_back(one.told);
        }
        return counts;
    };
    line.complete(2);
    EXPECT_EQ(told(), (std::vector<int>{0, 1, 0, 1, 0, 1}));
    line.complete(4);
    EXPECT_EQ(told(), (std::vector<int>{1, 1, 0, 1, 1, 1}));
    line.complete(5);
    EXPECT_EQ(told(), (std::vector<int>{1, 1, 1, 1, 1, 1}));
}

TEST(Timeline, DoesNotKeepAWaiterWhoseEpochIsOver) {
    timeline line;
    line.complete(4);
    counting late;
    EXPECT_FALSE(line.wait(late, 4));
    line.complete(5);
    EXPECT_EQ(late.told, 0);
}

TEST(Timeline, LosesNoWaiterThatRacesWithTheCompletion) {
    constexpr epoch rounds = 20000;
    timeline line;
    std::vector<counting> waiters(rounds + 1);
    std::vector<char> kept(rounds + 1);
    std::thread completes([&] {
        for (epoch at = 1; at <= rounds; ++at) {
            line.complete(at);
        }
    });
    for (epoch at = 1; at <= rounds; ++at) {
        kept[at] = line.wait(waiters[at], at) ? 1 : 0;
    }
    completes.join();
    for (epoch at = 1; at <= rounds; ++at) {
        ASSERT_EQ(waiters[at].told, kept[at]) << "epoch " << at;
    }
}

TEST(Timeline, TellsEachOfManyWaitersOnceWhenTheyAllRace) {
    constexpr epoch rounds = 5000;
    constexpr std::size_t threads = 3;
    timeline line;
    std::vector<std::vector<counting>> waiters;
    for (std::size_t i = 0; i < threads; ++i) {
        waiters.emplace_back(rounds + 1);
    }
    std::vector<std::vector<char>> kept(threads, std::vector<char>(rounds + 1));
    std::vector<std::thread> waits;
    for (std::size_t i = 0; i < threads; ++i) {
        waits.emplace_back([&, i] {
            // Near and far epochs in turn, so that some newcomers must be put back for later completions.
            for (epoch at = 1; at <= rounds; ++at) {
                const epoch wanted = at % 2 == 0 ? at : rounds - at;
                kept[i][wanted] = line.wait(waiters[i][wanted], wanted) ? 1 : 0;
            }
        });
    }
    for (epoch at = 1; at <= rounds; ++at) {
        line.complete(at);
        if (at % 64 == 0) {
            std::this_thread::yield();
        }
    }
    for (std::thread& one : waits) {
        one.join();
    }
    for (std::size_t i = 0; i < threads; ++i) {
        for (epoch at = 1; at <= rounds; ++at) {
            ASSERT_EQ(waiters[i][at].told, kept[i][at]) << "waiter " << i << ", epoch " << at;
        }
    }
}

TEST(TimelineTable, GivesANumberOutAgainAndItsEpochsGoOn) {
    timeline_table& table = timeline_table::instance();
    const timeline_id first = table.acquire();
    const epoch before = table.completed(first);
    table.at(first).complete(before + 7);
    table.release(first);
    const timeline_id again = table.acquire();
    ASSERT_EQ(again, first);
    EXPECT_TRUE(table.is_complete({first, before + 7})) << "a point of the former stream must stay complete";
    EXPECT_FALSE(table.is_complete({first, before + 8}));
    table.release(again);
}

TEST(TimelineTable, HostWaitReturnsOnlyOnceThePointIsOver) {
    timeline_table& table = timeline_table::instance();
    const timeline_id id = table.acquire();
    const epoch at = table.completed(id) + 1;
    std::atomic<bool> completed{false};
    std::thread completes([&] {
        completed = true;
        table.at(id).complete(at);
    });
    table.host_wait({id, at});
    EXPECT_TRUE(completed);
    completes.join();
    table.release(id);
}

}  // namespace
}  // namespace weir::backend
