// Each call of the driver fails in turn: no result is wrong, no work is lost, nothing hangs, and the error says what happened.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "support/effort.hpp"
#include "support/messages.hpp"
#include "support/time_limit.hpp"
#include "unit/cuda_support.hpp"
#include "unit/cuda_sweep_programs.hpp"

namespace weir::test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

void settle() {
    for (;;) {
        try {
            cuda().synchronize();
            return;
        } catch (const error&) {
            // reported once; ask again
        }
    }
}

class CudaFault : public ::testing::Test {
protected:
    void SetUp() override {
        if (!fake_cuda::in_use()) {
            GTEST_SKIP() << "needs a driver that fails when it is told to";
        }
        ASSERT_TRUE(sweep::uses_the_pool());
        settle();
    }
    void TearDown() override {
        if (fake_cuda::in_use()) {
            fake_cuda::fail_no_more();
        }
    }
};

TEST_F(CudaFault, ALaunchThatFailsPoisonsWhatItWasToWrite) {
    const stream s(cuda());
    array x = make(s, 1);
    s.synchronize();
    fake_cuda::fail("cuLaunchKernelEx", 1, 701);
    step_in_place(on(s).label("too large"), x);
    EXPECT_THAT(message_of<operation_error>([&] { static_cast<void>(x.read<double>()); }),
                ::testing::AllOf(HasSubstr("too large"), HasSubstr("cuLaunchKernelEx")));
    settle();
}

TEST_F(CudaFault, WhereTheDriverTakesNoWaitTheCallWaits) {
    const stream a(cuda());
    const stream b(cuda());
    array x = make(a, 1);
    array y = make(b, 0);
    cuda().synchronize();
    fake_gate held(handle_of(a));
    step_in_place(a, x);
    fake_cuda::forget_calls();
    fake_cuda::fail("cuStreamWaitEvent", 1, 1);
    std::atomic<bool> has_returned{false};
    std::thread caller([&] {
        step(b, y, x);
        has_returned = true;
    });
    // Long enough for a call that does not wait to return, and for its work to read what is not written yet.
    const auto start = std::chrono::steady_clock::now();
    while (fake_cuda::calls("cuStreamWaitEvent") == 0 ||
           std::chrono::steady_clock::now() - start < std::chrono::milliseconds(20)) {
        std::this_thread::yield();
    }
    EXPECT_FALSE(has_returned);
    held.open();
    caller.join();
    cuda().synchronize();
    EXPECT_THAT(values_of<double>(y), Each(111));
}

TEST_F(CudaFault, AnEventThatTheDriverDidNotWaitForIsNotWaitedForInsteadOfALaterOne) {
    const stream a(cuda());
    const stream b(cuda());
    const stream other(cuda());
    const stream waits(cuda());
    array x = make(a, 1);
    array y = make(b, 1);
    array u = make(other, 0);
    array z = make(waits, 0);
    cuda().synchronize();
    fake_gate held(handle_of(a));
    step_in_place(a, x);
    step(other, u, x);  // its event is there for `waits`, too
    fake_cuda::forget_calls();
    fake_cuda::fail("cuStreamWaitEvent", 1, 1);
    std::thread caller([&] { step(waits, z, x); });
    while (fake_cuda::calls("cuStreamWaitEvent") == 0) {
        std::this_thread::yield();
    }
    held.open();
    caller.join();
    cuda().synchronize();

    fake_gate late(handle_of(b));
    step_in_place(b, y);
    step(waits, z, y);
    fake_cuda::settle(handle_of(waits));
    late.open();
    EXPECT_THAT(values_of<double>(z), Each(111));
}

/// In a process of its own: nothing runs on the device any more.
TEST_F(CudaFault, ABrokenContextFailsEverythingAndHangsNothing) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            const stream s(cuda());
            array x = make(s, 1);
            s.synchronize();
            step_in_place(s, x);
            fake_cuda::break_contexts(719);
            step_in_place(s, x);
            const std::string told = message_of<operation_error>([&] { s.synchronize(); });
            const std::string later = message_of<error>([&] { static_cast<void>(make(s, 2).read<double>()); });
            std::fprintf(stderr, "%s\n%s\n", told.c_str(), later.c_str());
            std::exit(told.find("is lost") != std::string::npos && later != "nothing was thrown" ? 0 : 1);
        },
        ::testing::ExitedWithCode(0), "start it again");
}

/// No event was made before, and none can be made afterwards.
void expect_told_of_an_early_end(const stream_options& of) {
    EXPECT_EXIT(
        {
            const time_limit limit(sanitized ? 120 : 10, "a process whose context broke early");
            const stream s(cuda(), of);
            const fake_gate held(handle_of(s));  // no thread sees that anything is over before this ends
            array x = make(s, 1);
            fake_cuda::break_contexts(719);
            const std::string told = message_of<operation_error>([&] { s.synchronize(); });
            std::fprintf(stderr, "%s\n", told.c_str());
            std::exit(told.find("is lost") != std::string::npos ? 0 : 1);
        },
        ::testing::ExitedWithCode(0), "start it again");
}

/// The same in a stream that others use, of whose progress only events tell; none could be made for lack of memory.
void expect_told_of_an_early_end_in_a_stream_of_others() {
    EXPECT_EXIT(
        {
            const time_limit limit(sanitized ? 120 : 10, "a process whose context broke early, in a stream of others");
            const gpu::context& in = cuda_context();
            gpu::stream_handle raw = nullptr;
            {
                const gpu::in_context here(in);
                in.expect(in.api().stream_create(&raw, gpu::stream_non_blocking, 0), "cuStreamCreateWithPriority");
            }
            const stream s = stream::adopt({raw}, cuda());
            const fake_gate held(raw);
            fake_cuda::fail("cuEventCreate", 1, 2, true);
            array x = make(s, 1);
            fake_cuda::break_contexts(719);
            fake_cuda::fail_no_more();
            const std::string told = message_of<operation_error>([&] { s.synchronize(); });
            std::fprintf(stderr, "%s\n", told.c_str());
            std::exit(told.find("is lost") != std::string::npos ? 0 : 1);
        },
        ::testing::ExitedWithCode(0), "start it again");
}

TEST_F(CudaFault, ABrokenContextWithoutEventsHangsNothing) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    expect_told_of_an_early_end({});
    expect_told_of_an_early_end({.blocking = true});
    expect_told_of_an_early_end_in_a_stream_of_others();
}

/// The errors after which the driver's documentation requires a restart of the process, and those that the hardware cannot correct.
TEST_F(CudaFault, EachErrorThatStaysIsRaisedByWaits) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    for (const int what : {4, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911, 999}) {
        EXPECT_EXIT(
            {
                const time_limit limit(sanitized ? 120 : 10, "a wait in a context that broke");
                const stream s(cuda());
                array x = make(s, 1);
                s.synchronize();
                const fake_gate held(handle_of(s));
                step_in_place(s, x);
                fake_cuda::break_contexts(what);
                const std::string told = message_of<operation_error>([&] { s.synchronize(); });
                std::fprintf(stderr, "%s\n", told.c_str());
                std::exit(told.find("is lost") != std::string::npos ? 0 : 1);
            },
            ::testing::ExitedWithCode(0), "start it again")
            << what;
    }
}

TEST_F(CudaFault, TheFirstThreadThatFindsTheContextBrokenNotifiesAll) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            static_cast<void>(cuda(0));
            fake_cuda::break_contexts(719);
            const std::string told = message_of<device_error>(
                [] { static_cast<void>(kernel::from_source("extern \"C\" __global__ void k() {}", "k")); });
            std::fprintf(stderr, "%s\n", told.c_str());
            std::exit(cuda_context().is_broken() ? 0 : 1);
        },
        ::testing::ExitedWithCode(0), "start it again");
}

kernel make_trap(const device& on) {
    return kernel::from_source("extern \"C\" __global__ void trap(double*, int n) { if (n > 0) { __trap(); } }", "trap",
                               {}, on);
}

/// What a program sees whose kernel traps. Returns whether that is right; the messages go to the standard error output.
bool sees_a_trap() {
    const kernel trap = make_trap(cuda());
    static_cast<void>(step_kernel());
    const stream s(cuda());
    const stream other(cuda());
    array x = make(s, 1);
    array y = make(other, 2);
    launch(s, trap, {1, 32}, inout<double>(x), 0);
    s.synchronize();  // the control: it does not trap
    bool did_run = false;
    launch(on(s).label("the kernel that traps"), trap, {1, 32}, inout<double>(x), 1);
    step(other, y, x);
    host_task(
        other, [&did_run](auto...) { did_run = true; }, in<double>(y));
    const std::string of_other = message_of<operation_error>([&] { other.synchronize(); });
    const std::string of_stream = message_of<operation_error>([&] { s.synchronize(); });
    const std::string of_launch = message_of<error>([&] {
        step_in_place(s, x);
        s.synchronize();
    });
    const std::string of_read = message_of<error>([&] { static_cast<void>(y.read<double>()); });
    const std::string of_kernel = message_of<error>(
        [] { static_cast<void>(kernel::from_source("extern \"C\" __global__ void late() {}", "late")); });
    bool do_all_say_so = true;
    for (const std::string& message : {of_other, of_stream, of_launch, of_read, of_kernel}) {
        std::fprintf(stderr, "%s\n", message.c_str());
        do_all_say_so = do_all_say_so && message.find("An earlier kernel failed") != std::string::npos;
    }
    // Work that is not on that device goes on.
    array here = full(elements, 3.0, dtype::float64, stream(cpu()));
    return do_all_say_so && !did_run && values_of<double>(here).front() == 3;
}

/// In a process of its own, which ends by itself: pending work is given up, and memory, streams and kernels are released.
TEST(CudaTrapDeathTest, AKernelThatTrapsIsAClearErrorAndTheProcessEnds) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            const time_limit limit(60, "a process whose kernel trapped");
            const bool is_right = sees_a_trap();
            std::exit(is_right ? 0 : 1);
        },
        ::testing::ExitedWithCode(0), "start it again");
}

/// What a program sees whose kernel traps on the second device while streams of the first wait for it, one of them for the other.
/// Returns whether everything that waited has failed, and none of it is treated as a result.
bool sees_a_trap_across_devices() {
    const kernel trap = make_trap(cuda(1));
    const stream here(cuda(0));
    const stream behind(cuda(0));
    const stream there(cuda(1));
    array x = make(here, 1);
    array z = make(behind, 2);
    array y = make(there, 3);
    launch(there, trap, {1, 32}, inout<double>(y), 0);
    for (const int number : {0, 1}) {
        cuda(number).synchronize();  // the control: it does not trap
    }
    device_flag later(gpu::context_of(cuda(1).state(detail::key).driver()));
    later.hold(static_cast<gpu::stream_handle>(handle_of(there)));
    launch(on(there).label("the kernel that traps"), trap, {1, 32}, inout<double>(y), 1);
    copy(here, x, y);
    const completion last = step(behind, z, x);
    if (last.done()) {
        return false;
    }
    later.raise();
    const std::string of_last = message_of<operation_error>([&] { last.synchronize(); });
    const std::string of_copied = message_of<operation_error>([&] { static_cast<void>(x.read<double>()); });
    const std::string of_both = message_of<operation_error>([&] { static_cast<void>(z.read<double>()); });
    const std::string of_source = message_of<operation_error>([&] { static_cast<void>(y.read<double>()); });
    bool do_all_say_so = true;
    for (const std::string& message : {of_last, of_copied, of_both, of_source}) {
        std::fprintf(stderr, "%s\n", message.c_str());
        do_all_say_so = do_all_say_so && message.find("An earlier kernel failed") != std::string::npos;
    }
    return do_all_say_so;
}

TEST(CudaTrapDeathTest, K4WhatWaitsForADeviceWhoseKernelTrapsHasFailed) {
    const std::vector<device> all = devices();
    if (std::count_if(all.begin(), all.end(), [](const device& one) { return one.kind() == device_kind::cuda; }) < 2) {
        GTEST_SKIP() << "needs two CUDA devices";
    }
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            const time_limit limit(60, "a process whose kernel trapped on another device");
            const bool is_right = sees_a_trap_across_devices();
            std::exit(is_right ? 0 : 1);
        },
        ::testing::ExitedWithCode(0), "start it again");
}

/// In a process of its own, whose driver lacks functions that came later than CUDA 11.7.
[[noreturn]] void run_without(void (*take_out)(gpu::driver_api&)) {
    take_out(const_cast<gpu::driver_api&>(*gpu::machine_driver().api));  // no other code has used it yet
    std::_Exit(sweep::uses_the_pool() ? 0 : 1);
}

constexpr std::array without = {
    +[](gpu::driver_api& api) { api.context_record_event = nullptr; },
    +[](gpu::driver_api& api) { api.stream_id = nullptr; },
    +[](gpu::driver_api& api) { api.launch_as = nullptr; },
    +[](gpu::driver_api& api) { api.function_load = nullptr; },
    +[](gpu::driver_api& api) { api.function_parameter = nullptr; },
    +[](gpu::driver_api& api) { api.function_parameter_count = nullptr; },
    +[](gpu::driver_api& api) { api.function_name = nullptr; },
    +[](gpu::driver_api& api) { api.memory_create = nullptr; },
};

TEST(CudaDriverDeathTest, OlderOnesDoTheSame) {
    ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
    for (const auto take_out : without) {
        EXPECT_EXIT(run_without(take_out), ::testing::ExitedWithCode(0), "");
    }
    EXPECT_EXIT(run_without([](gpu::driver_api& api) {
                    for (const auto take_out : without) {
                        take_out(api);
                    }
                }),
                ::testing::ExitedWithCode(0), "");
}

TEST(CudaDriverDeathTest, OneThatIsTooOldIsRefusedWithWhatToInstall) {
    if (!fake_cuda::in_use()) {
        GTEST_SKIP() << "needs a driver that says it is older than it is";
    }
    ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
    const auto ask = [](const char* version) {
        ::setenv("WEIR_FAKE_CUDA_VERSION", version, 1);
        try {
            static_cast<void>(cuda(0));
        } catch (const device_error& why) {
            std::fprintf(stderr, "%s", why.what());
            std::_Exit(3);
        }
        std::_Exit(0);
    };
    EXPECT_EXIT(ask("11060"), ::testing::ExitedWithCode(3),
                "the CUDA driver is for CUDA 11.6, and Weir needs 11.7 or later: install a newer driver");
    EXPECT_EXIT(ask("11070"), ::testing::ExitedWithCode(0), "") << "control";
}

}  // namespace
}  // namespace weir::test
