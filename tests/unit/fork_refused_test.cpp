// In the child of a process that was not at rest at the fork, calls throw and never hang (rule L3).
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <latch>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/lifetime/reaper.hpp"
#include "support/effort.hpp"
#include "unit/fork_support.hpp"

namespace weir::test {
namespace {

TEST(ForkRefused, PendingWorkIsAnErrorInTheChildAndUnharmedInTheParent) {
    testing::gate held;
    const stream s(cpu(), {.name = "the one at work"});
    array x = zeros(16, dtype::float64, s);
    held.hold(s);
    fill(s, x, 2.0);
    const int result = in_child([&] {
        const std::string says = "work was pending at the fork (in the stream \"the one at work\" of cpu)";
        int wrong = 0;
        wrong += refuses([&] { s.synchronize(); }, says) ? 0 : 1;
        wrong += refuses([&] { fill(s, x, 3.0); }, says) ? 0 : 2;
        wrong += refuses([&] { (void)empty(16, dtype::float64, s); }, says) ? 0 : 4;
        wrong += refuses([&] { const stream another; }, says) ? 0 : 8;
        wrong += refuses([&] { (void)s.record(); }, says) ? 0 : 16;
        wrong += refuses([&] { (void)x.read<double>(); }, "spawn") ? 0 : 32;
        // A child of the child is refused, too.
        wrong += in_child([&] { return refuses([&] { s.synchronize(); }, "forked") ? right : 1; }) == right ? 0 : 64;
        return wrong;
    });
    EXPECT_EQ(result, right);
    EXPECT_FALSE(s.done());
    held.open();
    EXPECT_EQ(x.read<double>()[15], 2.0);
    EXPECT_EQ(in_child([] { return wrong_on(cpu()); }), right) << "the control: with nothing pending";
}

TEST(ForkRefused, PendingWorkOfAnotherDevice) {
    for (const char* const name : {"sim:0", "cuda:0"}) {
        testing::gate held;
        const stream s(device::from_name(name));
        held.hold(s);
        EXPECT_EQ(in_child([] { return refuses([] { (void)wrong_on(cpu()); }, "work was pending") ? right : 1; }),
                  right);
        held.open();
        s.synchronize();
        EXPECT_EQ(in_child([] { return wrong_on(cpu()); }), right) << name;
    }
}

TEST(ForkRefused, AThreadInsideWeir) {
    std::array<double, 4> memory{};
    std::latch inside(1);
    std::latch leave(1);
    array x(buffer::wrap(memory.data(), sizeof(memory), cpu(),
                         [&] {
                             inside.count_down();
                             leave.wait();
                         }),
            dtype::float64, 4);
    {
        testing::gate held;
        const stream s(cpu());
        held.hold(s);
        fill(s, x, 1.0);
        x = {};
        held.open();
        s.synchronize();
    }
    inside.wait();
    EXPECT_EQ(in_child([] { return refuses([] { (void)wrong_on(cpu()); }, "another thread was inside") ? right : 1; }),
              right);
    leave.count_down();
    runtime::reaper::wait_until_empty();
    EXPECT_EQ(in_child([] { return wrong_on(cpu()); }), right) << "the control: once it has left";
}

TEST(ForkRefused, CodeThatWeirCalls) {
    for (const device& on : {cpu(), cpu_inline()}) {
        int result = 1;
        const stream s(on);
        host_task(s, [&result, &on] {
            result =
                in_child([&on] { return refuses([&on] { (void)wrong_on(on); }, "and cannot use it") ? right : 1; });
        });
        s.synchronize();
        EXPECT_EQ(result, right) << on.name();
        EXPECT_EQ(in_child([&on] { return wrong_on(on); }), right);
    }
}

TEST(ForkRefused, CodeThatWeirCallsWhenNothingIsPending) {
    std::array<double, 16> memory{};
    std::atomic<int> result{-1};
    array x(buffer::wrap(memory.data(), sizeof(memory), cpu(),
                         [&result] {
                             result = in_child([] {
                                 return refuses([] { (void)wrong_on(cpu()); }, "inside a call of Weir") ? right : 1;
                             });
                         }),
            dtype::float64, 16);
    const stream s(cpu());
    testing::gate held;
    held.hold(s);
    fill(s, x, 1.0);
    x = {};  // in use: a thread of Weir's releases it once the work is over
    held.open();
    s.synchronize();
    runtime::reaper::wait_until_empty();
    EXPECT_EQ(result, right);
    EXPECT_EQ(in_child([] { return wrong_on(cpu()); }), right);
}

TEST(ForkRefused, ItEndsAsProgramsDo) {
    testing::gate held;
    const auto s = std::make_unique<stream>(cpu());
    auto x = std::make_unique<array>(zeros(16, dtype::float64, *s));
    held.hold(*s);
    fill(*s, *x, 2.0);
    EXPECT_EQ(in_child(
                  [&] {
                      x = {};
                      return right;
                  },
                  ending::as_programs_do),
              right);
    held.open();
    s->synchronize();
}

// Each child works or is refused; none hangs.
TEST(ForkRefused, BesideThreadsThatAreAtWork) {
    std::atomic<bool> over{false};
    std::vector<std::thread> at_work;
    for (int i = 0; i < 3; ++i) {
        at_work.emplace_back([&over, i] {
            const device on = i == 2 ? cpu_inline() : cpu();
            while (!over) {
                const stream s(on);
                array x = zeros(100, dtype::float64, s);
                for (int k = 0; k < 10; ++k) {
                    x = add(s, x, x);
                }
                if (x.read<double>()[99] != 0.0) {
                    std::abort();
                }
            }
        });
    }
    const stream s(cpu());
    array x = full(16, 2.0, dtype::float64, s);
    s.synchronize();
    std::map<int, int> endings;
    constexpr int refused = 50;
    for (int i = 0; i < repeated(1000); ++i) {
        const auto body = [&] {
            try {
                return x.read<double>()[0] == 2.0 ? wrong_on(cpu()) : 8;
            } catch (const state_error&) {
                return refused;
            }
        };
        ++endings[in_child(body, i % 2 == 0 ? ending::at_once : ending::as_programs_do)];
    }
    over = true;
    for (std::thread& one : at_work) {
        one.join();
    }
    EXPECT_EQ(endings[right] + endings[refused], repeated(1000)) << ::testing::PrintToString(endings);
    RecordProperty("usable", endings[right]);
    RecordProperty("refused", endings[refused]);
    EXPECT_EQ(wrong_on(cpu()), right);
    EXPECT_EQ(in_child([] { return wrong_on(cpu()); }), right) << "and once they are gone";
}

}  // namespace
}  // namespace weir::test
