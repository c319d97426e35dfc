// Several devices in one program (rules O9, S8; scenarios D6, D7, C9): work on one device that depends on unfinished work on
// another keeps its place in its own stream, and the caller goes on.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "support/arrays.hpp"
#include "support/devices.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::values_of;
using testing::gate;

constexpr std::int64_t count = 64;

/// Work on one device, and dependent work on another. The last part of the names says how sim:0 behaves.
struct route {
    const char* name;
    const char* from;
    const char* to;
    std::optional<testing::sim_settings> sim_0;
};

void PrintTo(const route& r, std::ostream* out) { *out << r.name; }

class D6 : public ::testing::TestWithParam<route> {
protected:
    D6() {
        if (GetParam().sim_0) {
            sim(0).synchronize();  // from other tests
            behaviour_.emplace(sim(0), *GetParam().sim_0);
        }
    }
    void SetUp() override {
        if (!why_not_.empty()) {
            GTEST_SKIP() << why_not_;
        }
    }

private:
    /// The CPU where there is no such device, and the test is skipped.
    device found(const char* name) { return test::find_device(name, why_not_).value_or(cpu()); }

    std::optional<testing::simulated> behaviour_;
    std::string why_not_;

protected:
    const stream first{found(GetParam().from), {0, "first"}};
    const stream second{found(GetParam().to), {0, "second"}};
    array x = full(count, 1, dtype::float64, first);
    array y = zeros(count, dtype::float64, second);
};

const testing::sim_settings hostile{.engines = 2, .seed = 3, .adversarial = true};
const testing::sim_settings told{.seed = 4, .virtual_clock = true};

INSTANTIATE_TEST_SUITE_P(
    Between, D6,
    ::testing::Values(route{"CpuAndSim", "cpu", "sim:0", {}}, route{"SimAndCpu", "sim:0", "cpu", {}},
                      route{"TwoSims", "sim:0", "sim:1", {}}, route{"CpuAndHostileSim", "cpu", "sim:0", hostile},
                      route{"HostileSimAndCpu", "sim:0", "cpu", hostile}, route{"CpuAndToldSim", "cpu", "sim:0", told},
                      route{"ToldSimAndCpu", "sim:0", "cpu", told}, route{"CpuAndCuda", "cpu", "cuda:0", {}},
                      route{"CudaAndCpu", "cuda:0", "cpu", {}}, route{"SimAndCuda", "sim:0", "cuda:0", {}},
                      route{"CudaAndSim", "cuda:0", "sim:0", {}}, route{"TwoCudas", "cuda:0", "cuda:1", {}},
                      route{"TwoCudasBack", "cuda:1", "cuda:0", {}}),
    [](const auto& about) { return std::string(about.param.name); });

TEST_P(D6, TheCallerIsNotBlockedTheOrderHoldsAndLaterWorkStaysBehind) {
    first.synchronize();
    second.synchronize();
    gate held;
    held.hold(first);
    fill(first, x, 7);
    const completion copied = copy(second, y, x);
    // Later work on the second stream does not depend on the first.
    array z = full(count, 3, dtype::float64, second);
    const event after = second.record();
    const stream beside(second.device());
    parallel_for(
        beside, 1, [](auto, auto) {}, in(z.view<double>()));
    // None of these calls has blocked: the gate is closed.
    EXPECT_FALSE(copied.done());
    EXPECT_FALSE(z.ready());
    EXPECT_FALSE(after.done());
    const stream free(second.device());
    fill(free, full(count, 1, dtype::float64, free), 2);
    free.synchronize();  // other streams of the device go on
    EXPECT_FALSE(after.done());
    held.open();
    EXPECT_EQ(values_of<double>(y), std::vector<double>(count, 7));
    EXPECT_EQ(values_of<double>(z), std::vector<double>(count, 3));
    EXPECT_TRUE(copied.done());
}

TEST_P(D6, ControlWithoutOrderingTheOldValuesAreSeen) {
    first.synchronize();
    second.synchronize();
    const ordering_scope by_hand(ordering_mode::manual);
    gate held;
    held.hold(first);
    fill(first, x, 7);
    copy(second, y, x).synchronize();
    EXPECT_EQ(values_of<double>(y), std::vector<double>(count, 1));
    held.open();
    first.synchronize();
}

TEST_P(D6, AnEventOfTheOtherDeviceIsEnoughByHand) {
    first.synchronize();
    second.synchronize();
    const ordering_scope by_hand(ordering_mode::manual);
    gate held;
    held.hold(first);
    fill(first, x, 7);
    second.wait(first.record());
    copy(second, y, x);
    held.open();
    second.synchronize();
    EXPECT_EQ(values_of<double>(y), std::vector<double>(count, 7));
}

TEST_P(D6, UnderCheckItIsRightAndBothLinesAreNamedUnlessOrderedByHand) {
    for (const bool is_mended : {false, true}) {
        fill(first, x, 1);
        first.synchronize();
        second.synchronize();
        const check_scope check;
        const ordering_scope by_hand(ordering_mode::manual);
        gate held;
        held.hold(first);
        const on filling = on(first).label("fill");
        fill(filling, x, 7);
        if (is_mended) {
            second.wait(first.record());
        }
        const on copying = on(second).label("copy");
        copy(copying, y, x);
        held.open();
        second.synchronize();
        EXPECT_EQ(values_of<double>(y), std::vector<double>(count, 7));
        first.synchronize();
        const report found = check.report();
        EXPECT_EQ(found.size(), is_mended ? 0U : 1U) << found.to_string();
        for (const race& one : found) {
            EXPECT_EQ(one.kind, "RAW");
            EXPECT_EQ(one.first.label, "fill");
            EXPECT_EQ(one.first.line, filling.site(detail::key).where.line);
            EXPECT_EQ(one.second.label, "copy");
            EXPECT_EQ(one.second.line, copying.site(detail::key).where.line);
        }
    }
}

TEST_P(D6, ThereAndBackAHundredTimes) {
    for (int round = 0; round < 100; ++round) {
        parallel_for(
            first, count, [](auto i, auto v) { v[i] = v[i] * 0.5 + 1; }, inout(x.view<double>()));
        copy(second, y, x);
        parallel_for(
            second, count, [](auto i, auto v) { v[i] += 1; }, inout(y.view<double>()));
        copy(first, x, y);
    }
    double expected = 1;
    for (int round = 0; round < 100; ++round) {
        expected = expected * 0.5 + 1 + 1;
    }
    EXPECT_EQ(values_of<double>(x), std::vector<double>(count, expected));
}

TEST_P(D6, WorkThatDependsOnFailedWorkOfTheOtherDeviceDoesNotRun) {
    parallel_for(
        on(first).label("broken"), 1, [](auto, auto) { throw std::runtime_error("on purpose"); },
        out(x.view<double>()));
    copy(second, y, x);
    try {
        static_cast<void>(y.read<double>());
        FAIL() << "a result that is not valid was handed out";
    } catch (const operation_error& told_of) {
        EXPECT_EQ(told_of.label(), "broken");
    }
    fill(second, y, 4);
    EXPECT_EQ(values_of<double>(y)[0], 4);
}

TEST_P(D6, AStreamWhoseWorkIsHeldMayBeDropped) {
    gate held;
    {
        const stream dropped(second.device());
        held.hold(first);
        fill(first, x, 5);
        copy(dropped, y, x);
    }
    held.open();
    EXPECT_EQ(values_of<double>(y), std::vector<double>(count, 5));
}

class O9 : public ::testing::TestWithParam<route> {};

INSTANTIATE_TEST_SUITE_P(Between, O9,
                         ::testing::Values(route{"CpuAndSim", "cpu", "sim:0", {}},
                                           route{"CpuAndCuda", "cpu", "cuda:0", {}},
                                           route{"SimAndCuda", "sim:0", "cuda:0", {}},
                                           route{"TwoCudas", "cuda:0", "cuda:1", {}}),
                         [](const auto& about) { return std::string(about.param.name); });

TEST_P(O9, EightThreadsPassWorkBetweenTwoDevices) {
    std::string why_not;
    const std::optional<device> one = test::find_device(GetParam().from, why_not);
    const std::optional<device> other = test::find_device(GetParam().to, why_not);
    if (!one || !other) {
        GTEST_SKIP() << why_not;
    }
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 8; ++thread) {
        threads.emplace_back([&, thread] {
            const stream near(*one);
            const stream far(*other);
            array here = full(16, thread, dtype::float64, near);
            array there = empty(16, dtype::float64, far);
            for (int round = 0; round < 100; ++round) {
                copy(far, there, here);
                parallel_for(
                    far, 16, [](auto i, auto v) { v[i] += 1; }, inout(there.view<double>()));
                copy(near, here, there);
            }
            for (const double each : here.read<double>()) {
                wrong += each == thread + 100 ? 0 : 1;
            }
        });
    }
    for (std::thread& each : threads) {
        each.join();
    }
    EXPECT_EQ(wrong, 0);
}

class S8 : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(On, S8, ::testing::Values("sim:0", "cuda:0"), [](const auto& about) {
    return std::string(about.param).substr(0, std::strlen(about.param) - 2);
});

TEST_P(S8, AnInlineStreamBlocksOnWorkOfAnAccelerator) {
    std::string why_not;
    const std::optional<device> accelerator = test::find_device(GetParam(), why_not);
    if (!accelerator) {
        GTEST_SKIP() << why_not;
    }
    const stream far(*accelerator);
    const stream at_once(cpu_inline());
    array there = zeros(count, dtype::float64, far);
    array here = zeros(count, dtype::float64, at_once);
    gate held;
    held.hold(far);
    fill(far, there, 6);
    std::thread caller([&] {
        EXPECT_TRUE(copy(at_once, here, there).done());
        EXPECT_EQ(here.data()[0], std::byte{0}) << "6.0 begins with a zero byte";
        EXPECT_EQ(here.read<double>()[1], 6);
    });
    held.open();
    caller.join();
    fill(at_once, here, 8);
    copy(far, there, here);
    EXPECT_EQ(values_of<double>(there)[2], 8);
}

TEST(FindDevice, OneThatTheMachineLacksIsNoneAndItSaysWhy) {
    std::string why_not;
    EXPECT_FALSE(test::find_device("cuda:99", why_not).has_value());
    EXPECT_NE(why_not, "");
    EXPECT_TRUE(test::find_device("sim:0", why_not).has_value());
}

TEST(C9, SynchronizingADeviceWaitsForAllOfItsStreamsAndForNoOthers) {
    std::vector<device> all = {cpu(), sim(0), sim(1)};
    std::string why_not;
    for (const char* const name : {"cuda:0", "cuda:1"}) {
        if (const std::optional<device> found = test::find_device(name, why_not)) {
            all.push_back(*found);
        } else {
            std::printf("without %s: %s\n", name, why_not.c_str());
        }
    }
    const int count_of_devices = static_cast<int>(all.size());
    for (const device& waited : all) {
        SCOPED_TRACE(waited.name());
        std::vector<gate> held(all.size());
        std::atomic<int> ran{0};
        for (std::size_t i = 0; i < all.size(); ++i) {
            const stream s(all[i]);  // dropped while busy
            if (!(all[i] == waited)) {
                held[i].hold(s);
            }
            parallel_for(s, 1, [&](auto) { ++ran; });
        }
        waited.synchronize();
        EXPECT_EQ(ran, 1) << "its own stream is through, the others are held";
        for (gate& one : held) {
            one.open();
        }
        for (const device& one : all) {
            one.synchronize();
        }
        EXPECT_EQ(ran, count_of_devices);
    }
}

}  // namespace
}  // namespace weir
