// A CPU that works after a fork (rule L3): the child of a process that was at rest goes on.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <complex>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/lifetime/reaper.hpp"
#include "unit/fork_support.hpp"
#include "weir/check.hpp"
#include "weir/fft.hpp"

namespace weir::test {
namespace {

class Fork : public ::testing::TestWithParam<const char*> {
protected:
    device on = device::from_name(GetParam());
};

INSTANTIATE_TEST_SUITE_P(All, Fork, ::testing::Values("cpu", "cpu:inline"),
                         [](const auto& which) { return std::string(which.param) == "cpu" ? "Cpu" : "Inline"; });

TEST_P(Fork, TheChildGoesOnWithWhatThereIs) {
    const stream s(on);
    array x = full(1000, 2.0, dtype::float64, s);
    const event before = s.record();
    s.synchronize();
    const int result = in_child([&] {
        int wrong = x.read<double>()[999] == 2.0 ? 0 : 1;
        wrong += before.done() ? 0 : 2;
        fill(s, x, 5.0);
        wrong += x.read<double>()[999] == 5.0 ? 0 : 4;
        wrong += wrong_on(on) == right ? 0 : 8;
        const stream other(on);
        other.wait(s);
        array y = add(other, x, x);
        other.synchronize();
        wrong += y.read<double>()[0] == 10.0 ? 0 : 16;
        on.synchronize();
        return wrong;
    });
    EXPECT_EQ(result, right);
    EXPECT_EQ(x.read<double>()[999], 2.0) << "the parent has its own memory";
    fill(s, x, 3.0);
    EXPECT_EQ(x.read<double>()[999], 3.0);
    EXPECT_EQ(wrong_on(on), right);
}

TEST_P(Fork, K5TheChildGoesOnWithTokens) {
    const token slot("slot");
    const stream s(on);
    host_task(
        s, [] {}, inout(slot));
    s.synchronize();
    const int result = in_child([&] {
        int order = 0;
        const stream other(on);
        const token made_here("made in the child");
        host_task(
            s, [&order] { order = order * 10 + 1; }, inout(slot), inout(made_here));
        host_task(
            other, [&order] { order = order * 10 + 2; }, inout(slot), in(made_here))
            .synchronize();
        return order == 12 ? right : 1;
    });
    EXPECT_EQ(result, right);
    host_task(
        s, [] {}, inout(slot))
        .synchronize();
}

TEST_P(Fork, TheFirstOperationOfTheChildStartsItsThreads) {
    const stream s(on);
    host_task(s, [] {}).synchronize();
    const int result = in_child([&] {
        std::atomic<bool> has_run{false};
        host_task(s, [&] { has_run = true; });
        while (!has_run) {  // without a call of Weir meanwhile
            std::this_thread::yield();
        }
        return right;
    });
    EXPECT_EQ(result, right);
}

TEST_P(Fork, AChildOfAChild) {
    const stream s(on);
    array x = full(16, 2.0, dtype::float64, s);
    s.synchronize();
    const int result = in_child([&] {
        const int second = in_child([&] { return wrong_on(on) + (x.read<double>()[3] == 2.0 ? 0 : 8); });
        fill(s, x, 4.0);
        s.synchronize();
        const int third = in_child([&] { return wrong_on(on) + (x.read<double>()[3] == 4.0 ? 0 : 8); });
        return second == right && third == right && wrong_on(on) == right ? right : 1;
    });
    EXPECT_EQ(result, right);
}

TEST_P(Fork, MemoryOfThePoolIsUsedAgain) {
    const stream s(on);
    array x = full(1 << 16, 2.0, dtype::float64, s);
    const void* const where = x.buffer().data();
    s.synchronize();
    const int result = in_child([&] {
        x = {};
        array y = empty(1 << 16, dtype::float64, s);
        return y.buffer().data() == where ? right : 1;
    });
    EXPECT_EQ(result, right);
    x = {};
    EXPECT_EQ(empty(1 << 16, dtype::float64, s).buffer().data(), where) << "in the parent as well";
}

TEST_P(Fork, TransformsAndChecksInTheChild) {
    const stream s(on);
    array x = full(8, std::complex<double>(1.0), dtype::complex128, s);
    fft_plan plan(x);
    plan.plan();
    static_cast<void>(plan.execute(s, fft_direction::forward));
    s.synchronize();
    const int result = in_child([&] {
        const check_scope scope;
        array y = plan.execute(s, fft_direction::forward);
        fft_plan fresh(y);
        fresh.plan();
        array z = fresh.execute(s, fft_direction::inverse);
        int wrong = y.read<std::complex<double>>()[0] == 8.0 ? 0 : 1;
        wrong += z.read<std::complex<double>>()[0] == 1.0 ? 0 : 2;
        wrong += scope.report().empty() ? 0 : 4;
        // The control: the check detects this case.
        const stream other(on);
        const ordering_scope by_hand(ordering_mode::manual);
        fill(s, y, 1.0);
        fill(other, y, 2.0);
        on.synchronize();
        wrong += scope.report().empty() ? 8 : 0;
        return wrong;
    });
    EXPECT_EQ(result, right);
}

TEST_P(Fork, WhatIsLetGoOfInTheChildIsLetGoOfThere) {
    runtime::reaper::wait_until_empty();
    std::array<double, 16> memory{};
    std::atomic<int> released{0};
    array x(buffer::wrap(memory.data(), sizeof(memory), on, [&released] { ++released; }), dtype::float64, 16);
    const stream s(on);
    fill(s, x, 1.0);
    s.synchronize();
    const int result = in_child([&] {
        const stream own(cpu());  // a gate holds it
        testing::gate held;
        held.hold(own);
        fill(own, x, 2.0);
        x = {};  // in use, so that a thread of the child's has to release it
        held.open();
        own.synchronize();
        runtime::reaper::wait_until_empty();
        return released == 1 ? wrong_on(on) : 2;
    });
    EXPECT_EQ(result, right);
    EXPECT_EQ(released, 0);
    x = {};
    runtime::reaper::wait_until_empty();
    EXPECT_EQ(released, 1);
}

TEST_P(Fork, RightAfterTheWorkIsOver) {
    // Threads of Weir's may be about to sleep: the fork waits for them.
    const stream s(on);
    array x = zeros(16, dtype::float64, s);
    for (int i = 0; i < 50; ++i) {
        fill(s, x, i);
        s.synchronize();
        ASSERT_EQ(in_child([&] { return x.read<double>()[0] == i ? wrong_on(on) : 8; }), right) << "fork " << i;
    }
}

TEST_P(Fork, AChildThatEndsAsProgramsDo) {
    std::atomic<int> ran{0};
    const stream s(on);
    host_task(s, [&ran] { ++ran; }).synchronize();
    EXPECT_EQ(in_child([] { return right; }, ending::as_programs_do), right) << "without any use";
    EXPECT_EQ(in_child([&] { return wrong_on(on) + (ran == 1 ? 0 : 8); }, ending::as_programs_do), right);
}

TEST_P(Fork, StreamsOfTheChildWaitForEachOther) {
    const stream s(on);
    array x = zeros(16, dtype::float64, s);
    s.synchronize();
    const int result = in_child([&] {
        if (on.kind() == device_kind::cpu_inline) {
            return right;  // nothing can hold its streams
        }
        // Two tasks that need two threads, behind a gate.
        testing::gate held;
        const stream a(on);
        const stream b(on);
        held.hold(a);
        std::atomic<bool> there{false};
        host_task(a, [&there] {
            while (!there) {
                std::this_thread::yield();
            }
        });
        host_task(b, [&there] { there = true; });
        int wrong = a.done() ? 1 : 0;
        held.open();
        on.synchronize();
        wrong += there ? 0 : 2;
        return wrong;
    });
    EXPECT_EQ(result, right);
}

TEST(Fork, OtherDevicesStayWithTheParent) {
    for (const char* const name : {"sim:0", "cuda:0"}) {
        const device gpu = device::from_name(name);
        const stream s(gpu);
        const stream on_cpu(cpu());
        array x = full(16, 2.0, dtype::float64, s);
        array transformed = zeros(16, dtype::complex128, s);
        array dropped = full(16, 2.0, dtype::float64, s);
        gpu.synchronize();
        const std::string says = std::string(name) + " cannot be used in this process";
        const int result = in_child(
            [&] {
                int wrong = refuses([&] { fill(s, x, 3.0); }, says) ? 0 : 1;
                wrong += refuses([&] { (void)add(s, x, x); }, says) ? 0 : 1;
                wrong += refuses([&] { (void)sum(s, x); }, says) ? 0 : 1;
                wrong += refuses([&] { (void)fft::fft(s, x); }, says) ? 0 : 1;
                wrong += refuses([&] { (void)fft::fft(s, x, transformed); }, says) ? 0 : 1;
                wrong += refuses([&] { (void)x.read<double>(); }, says) ? 0 : 2;
                wrong += refuses([&] { const stream another(gpu); }, says) ? 0 : 4;
                if (gpu.kind() == device_kind::cuda) {
                    // The handles of default streams mean something without the driver, others do not.
                    for (std::uintptr_t handle = 0; handle <= 2; ++handle) {
                        void* const adopted = reinterpret_cast<void*>(handle);
                        wrong += refuses([&] { (void)stream::adopt({adopted}, gpu); }, says) ? 0 : 4;
                    }
                }
                wrong += refuses([&] { s.synchronize(); }, says) ? 0 : 8;
                wrong += refuses([&] { (void)empty(16, dtype::float64, s); }, says) ? 0 : 16;
                wrong += refuses([&] { (void)to(on_cpu, x, cpu()); }, says) ? 0 : 32;
                wrong += refuses([&] { gpu.synchronize(); }, says) ? 0 : 64;
                dropped = {};
                return wrong + (wrong_on(cpu()) == right ? 0 : 128);
            },
            ending::as_programs_do);
        EXPECT_EQ(result, right) << name;
        EXPECT_EQ(x.read<double>()[0], 2.0) << "the parent goes on";
        EXPECT_EQ(wrong_on(gpu), right);
    }
}

TEST(Fork, CudaIsNotThereInTheChild) {
    static_cast<void>(cuda(0));
    const int result = in_child([] {
        int wrong = refuses([] { (void)cuda(0); }, "CUDA cannot be used in this process") ? 0 : 1;
        for (const device& one : devices()) {
            wrong += one.kind() == device_kind::cuda ? 2 : 0;
        }
        return wrong;
    });
    EXPECT_EQ(result, right);
}

TEST(Fork, ASimulatedDeviceThatTheParentHadNotUsed) {
    EXPECT_EQ(in_child([] { return wrong_on(sim(7)); }), right);
}

TEST(Fork, SeveralThreadsAtOnce) {
    array x = full(16, 2.0, dtype::float64, stream(cpu()));
    cpu().synchronize();
    std::atomic<int> wrong{0};
    std::vector<std::thread> forking;
    for (int i = 0; i < 4; ++i) {
        forking.emplace_back([&] {
            for (int k = 0; k < 25; ++k) {
                wrong +=
                    in_child([&] { return wrong_on(cpu()) + (x.read<double>()[0] == 2.0 ? 0 : 8); }) == right ? 0 : 1;
            }
        });
    }
    for (std::thread& one : forking) {
        one.join();
    }
    EXPECT_EQ(wrong, 0) << "other threads that fork are not in the way";
}

}  // namespace
}  // namespace weir::test
