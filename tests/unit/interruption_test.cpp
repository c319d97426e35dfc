// Waits of the host that are interrupted by the program's own code.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "weir/detail/interruption.hpp"
#include "weir/weir.hpp"

namespace {

struct enough {};
std::atomic<int> asked{0};

void throw_at_the_third() {
    if (++asked == 3) {
        throw enough();
    }
}

TEST(Interruption, EndsAWaitOfTheHostAndLeavesEverythingInOrder) {
    const weir::stream s;
    weir::testing::gate gate;
    gate.hold(s);
    weir::array x = weir::ones({4}, weir::dtype::float64, s);
    asked = 0;
    {
        const weir::detail::interruptible answers(throw_at_the_third);
        EXPECT_THROW(s.synchronize(), enough);
        asked = 0;
        EXPECT_THROW(s.record().wait(), enough);
        asked = 0;
        EXPECT_THROW(static_cast<void>(x.read<double>()), enough);
        asked = 0;
        EXPECT_THROW(weir::cpu().synchronize(), enough);
    }
    EXPECT_FALSE(s.done());
    gate.open();
    s.synchronize();
    EXPECT_EQ(x.read<double>()[3], 1.0);
}

void accept() {}

/// A thread that waits again and again for the same moment.
TEST(Interruption, ADeadlineEndsAWait) {
    using weir::detail::interruptible;
    const weir::stream s;
    weir::testing::gate gate;
    gate.hold(s);
    const weir::event e = s.record();
    for (int i = 0; i < 100; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        const auto deadline = begin + std::chrono::microseconds(i * 20);
        const interruptible answers(accept, deadline);
        EXPECT_THROW(e.wait(), interruptible::deadline_passed);
        EXPECT_GE(std::chrono::steady_clock::now(), deadline);
    }
    gate.open();
    const interruptible answers(accept, std::chrono::steady_clock::now() + std::chrono::hours(1));
    e.wait();
    EXPECT_TRUE(e.done());
}

TEST(Interruption, ADeadlineEndsAWaitUnderAVirtualClock) {
    using weir::detail::interruptible;
    const weir::testing::simulated clocked(weir::sim(0), {.virtual_clock = true});
    const weir::stream s(weir::sim(0));
    weir::testing::gate gate;
    gate.hold(s);
    const weir::event e = s.record();
    {
        const interruptible answers(accept, std::chrono::steady_clock::now() + std::chrono::milliseconds(1));
        EXPECT_THROW(e.wait(), interruptible::deadline_passed);
    }
    gate.open();
    e.wait();
}

TEST(Interruption, IsNotAskedWhereNothingIsToBeWaitedFor) {
    const weir::stream s;
    s.synchronize();
    asked = 2;
    const weir::detail::interruptible answers(throw_at_the_third);
    s.synchronize();
    EXPECT_EQ(asked, 2);
}

TEST(Interruption, AsksUntilTheWaitIsOver) {
    const weir::stream s;
    weir::testing::gate gate;
    gate.hold(s);
    asked = 100;
    const weir::detail::interruptible answers(throw_at_the_third);
    std::thread opens([&] {
        while (asked < 102) {
            std::this_thread::yield();
        }
        gate.open();
    });
    s.synchronize();
    EXPECT_GE(asked, 102);
    opens.join();
}

TEST(Interruption, TheInnermostCountsAndTheOuterOneComesBack) {
    const weir::detail::interruptible outer(throw_at_the_third);
    EXPECT_EQ(weir::detail::interruptible::current(), &outer);
    {
        const weir::detail::interruptible none(nullptr);
        EXPECT_EQ(weir::detail::interruptible::current(), nullptr);
    }
    EXPECT_EQ(weir::detail::interruptible::current(), &outer);
}

/// The state that an enqueueing call leaves behind if its wait is interrupted. A gate holds `s`.
template <class Enqueue>
void expect_enqueued_all_the_same(Enqueue&& enqueue) {
    asked = 0;
    const weir::detail::interruptible answers(throw_at_the_third);
    EXPECT_NO_THROW(enqueue());
    EXPECT_TRUE(answers.has_ended());
    EXPECT_THROW(answers.expect_not_ended(), enough);
    EXPECT_THROW(answers.expect_not_ended(), enough);  // it stays so until the end
}

TEST(Interruption, WorkOnWhatTheHostSeesIsEnqueuedAllTheSame) {
    const weir::stream s;
    weir::array x = weir::ones({4}, weir::dtype::float64, s);
    const weir::host_access view(weir::detail::key, x.buffer(), x.footprint(weir::detail::key),
                                 weir::order::access_mode::write, weir::source_location::current());
    weir::testing::gate gate;
    gate.hold(s);
    expect_enqueued_all_the_same([&] { weir::fill(s, x, 3.0); });
    EXPECT_FALSE(s.done());
    EXPECT_EQ(reinterpret_cast<const double*>(x.data())[3], 1.0);
    gate.open();
    s.synchronize();
    EXPECT_EQ(reinterpret_cast<const double*>(x.data())[3], 3.0);
}

TEST(Interruption, AnotherThreadRunsWhatAStreamWithoutAQueueHasLeft) {
    const weir::stream s;
    const weir::stream a(weir::cpu_inline());
    const weir::stream b(weir::cpu_inline());
    weir::testing::gate gate;
    gate.hold(s);
    std::vector<int> order;  // of the threads that run the streams, one after the other
    const std::thread::id me = std::this_thread::get_id();
    std::thread::id ran_on = me;
    expect_enqueued_all_the_same([&] {
        weir::host_task(a, [&] {
            order.push_back(0);
            b.wait(s.record());
            weir::host_task(b, [&] { order.push_back(1); });
            weir::host_task(a, [&] {
                order.push_back(2);
                ran_on = std::this_thread::get_id();
            });
        });
    });
    EXPECT_EQ(order, (std::vector<int>{0}));
    gate.open();
    weir::host_task(a, [&] { order.push_back(3); });
    b.synchronize();
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
    EXPECT_NE(ran_on, me);
}

TEST(Interruption, AThreadWhoseWaitWasEndedWaitsNoMore) {
    const weir::stream s;
    const weir::stream a(weir::cpu_inline());
    weir::testing::gate gate;
    gate.hold(s);
    int ran = 0;
    expect_enqueued_all_the_same([&] {
        a.wait(s.record());
        for (int i = 0; i < 10; ++i) {
            weir::host_task(a, [&] { ++ran; });
        }
        EXPECT_THROW(s.synchronize(), enough);
    });
    EXPECT_EQ(asked, 3);
    gate.open();
    a.synchronize();
    EXPECT_EQ(ran, 10);
}

TEST(Interruption, IsNotForWhatWaitsWithinAnOperation) {
    const weir::stream s;
    const weir::stream a(weir::cpu_inline());
    weir::testing::gate gate;
    gate.hold(s);
    const weir::event held = s.record();
    asked = 0;
    std::thread opens([&] {
        while (asked == 0) {
            std::this_thread::yield();
        }
        gate.open();
    });
    bool is_over = false;
    {
        const weir::detail::interruptible answers(throw_at_the_third);
        weir::host_task(a, [&] {
            asked = 1;  // no queries from here on
            held.wait();
            is_over = true;
        });
        EXPECT_FALSE(answers.has_ended());
    }
    opens.join();
    EXPECT_EQ(asked, 1);
    EXPECT_TRUE(is_over);
}

TEST(Interruption, EndsTheWaitOfAThreadThatDrivesADevice) {
    const weir::stream s;
    weir::testing::gate gate;
    gate.hold(s);
    const weir::testing::simulated clocked(weir::sim(0), {.virtual_clock = true});
    const weir::stream t(weir::sim(0));
    t.wait(s.record());
    weir::array x = weir::ones({4}, weir::dtype::float64, t);
    {
        asked = 0;
        const weir::detail::interruptible answers(throw_at_the_third);
        EXPECT_THROW(t.synchronize(), enough);
    }
    EXPECT_FALSE(t.done());
    gate.open();
    EXPECT_EQ(x.read<double>()[3], 1.0);
}

}  // namespace
