// Waits of the host that are ended from within.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

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
    const weir::array x = weir::ones({4}, weir::dtype::float64, s);
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
    {
        const weir::detail::interruptible none(nullptr);
        EXPECT_EQ(weir::detail::interruptible::check(), nullptr);
    }
    EXPECT_EQ(weir::detail::interruptible::check(), &throw_at_the_third);
}

}  // namespace
