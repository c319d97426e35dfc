// Several CUDA devices: order and copies between them, priorities, and on which device pinned and managed memory is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "backend/cuda/device/driver.hpp"
#include "runtime/devices/device_state.hpp"
#include "unit/cuda_support.hpp"

namespace weir::test {
namespace {

using ::testing::Each;

namespace gpu = backend::cuda;

gpu::device_context& context_of(const device& one) { return gpu::context_of(one.state(detail::key).driver()); }

// --- priorities ----------------------------------------------------------------------------------------------------

/// The priority that the driver reports.
int priority_of(const stream& s) {
    gpu::device_context& in = context_of(s.device());
    const gpu::in_context here(in);
    int found = 99;
    in.expect(in.api().stream_priority(static_cast<gpu::stream_handle>(handle_of(s)), &found), "cuStreamGetPriority");
    return found;
}

TEST(CudaPriority, ReachesTheDriver) {
    for (const int priority : {0, -1, -2}) {
        const stream s(cuda(), {.priority = priority});
        EXPECT_EQ(priority_of(s), priority);
        EXPECT_EQ(s.priority(), priority);
    }
}

TEST(CudaPriority, TheNearestThatTheDeviceHasIsTaken) {
    gpu::device_context& in = context_of(cuda());
    int least = 0;
    int greatest = 0;
    {
        const gpu::in_context here(in);
        in.expect(in.api().context_priority_range(&least, &greatest), "cuCtxGetStreamPriorityRange");
    }
    const stream urgent(cuda(), {.priority = -1000});
    const stream patient(cuda(), {.priority = 1000});
    EXPECT_EQ(priority_of(urgent), greatest);
    EXPECT_EQ(urgent.priority(), greatest) << "a stream says what it has";
    EXPECT_EQ(priority_of(patient), least);
    EXPECT_EQ(stream(cpu(), {.priority = -1000}).priority(), -1000) << "kept where it means nothing";
}

TEST(CudaPriority, StreamsOfOthersHaveTheirOwn) {
    gpu::device_context& in = context_of(cuda());
    const gpu::in_context here(in);
    gpu::stream_handle raw = nullptr;
    in.expect(in.api().stream_create(&raw, gpu::stream_non_blocking, -1), "cuStreamCreateWithPriority");
    EXPECT_EQ(stream::adopt({raw}, cuda()).priority(), -1);
    cuda().synchronize();
    in.api().stream_destroy(raw);
}

// --- several devices -----------------------------------------------------------------------------------------------

/// Only the fake driver counts.
void forget_calls() {
    if (fake_cuda::in_use()) {
        fake_cuda::forget_calls();
    }
}
void expect_calls(const char* name, unsigned long long count, const char* why = "") {
    if (fake_cuda::in_use()) {
        EXPECT_EQ(fake_cuda::calls(name), count) << why;
    }
}

class CudaDevices : public ::testing::Test {
protected:
    void SetUp() override {
        const std::vector<device> all = devices();
        const auto is_cuda = [](const device& one) { return one.kind() == device_kind::cuda; };
        if (std::count_if(all.begin(), all.end(), is_cuda) < 2) {
            GTEST_SKIP() << "needs two CUDA devices";
        }
        cuda(0).synchronize();
        cuda(1).synchronize();
        memory::trim(cuda(0));
        memory::trim(cuda(1));
        forget_calls();
    }
};

/// The context that is current on a thread that had `before`, after it has put work into a stream of a device.
gpu::context_handle current_after_work_on(int number, gpu::context_handle before) {
    gpu::context_handle left = nullptr;
    std::thread([&] {
        const gpu::driver_api& api = gpu::context_of(cuda(number).state(detail::key).driver()).api();
        EXPECT_EQ(api.context_set_current(before), gpu::success);
        const stream s(cuda(number));
        static_cast<void>(make(s, 1));
        EXPECT_EQ(api.context_get_current(&left), gpu::success);
    }).join();
    return left;
}

TEST_F(CudaDevices, AThreadKeepsItsContext) {
    const gpu::context_handle first = gpu::context_of(cuda(0).state(detail::key).driver()).handle();
    const gpu::context_handle second = gpu::context_of(cuda(1).state(detail::key).driver()).handle();
    EXPECT_EQ(current_after_work_on(0, second), second);
    EXPECT_EQ(current_after_work_on(1, first), first);
    EXPECT_EQ(current_after_work_on(1, second), second);
}
TEST_F(CudaDevices, AThreadWithNoneGetsThatOfDevice0AsFromTheRuntimeAndNoOther) {
    EXPECT_EQ(current_after_work_on(0, nullptr), gpu::context_of(cuda(0).state(detail::key).driver()).handle());
    EXPECT_EQ(current_after_work_on(1, nullptr), nullptr);
}

/// Copies x on one device to y on the other, while the write of x is held.
double copied_behind(ordering_mode mode, unsigned long long waits) {
    const ordering_scope scope(mode);
    const stream here(cuda(0));
    const stream there(cuda(1));
    array x = make(here, 1);
    array y = make(there, 0);
    cuda(0).synchronize();
    cuda(1).synchronize();
    forget_calls();
    device_flag later(context_of(cuda(0)));
    later.hold(static_cast<gpu::stream_handle>(handle_of(here)));
    step_in_place(here, x);
    const completion done = copy(there, y, x);
    if (mode == ordering_mode::manual) {
        done.synchronize();
    }
    expect_calls("cuStreamWaitEvent", waits);
    later.raise();
    cuda(0).synchronize();
    cuda(1).synchronize();
    return values_of<double>(y).front();
}

TEST_F(CudaDevices, O1AStreamOfOneWaitsForThatOfAnotherOnTheDevice) {
    EXPECT_EQ(copied_behind(ordering_mode::automatic, 1), 11);
}
TEST_F(CudaDevices, O1ControlWithoutOrderingItDoesNot) { EXPECT_EQ(copied_behind(ordering_mode::manual, 0), 1); }

TEST_F(CudaDevices, L1MemoryOfOneThatTheOtherReadsIsNotUsedAgainBefore) {
    const stream here(cuda(0));
    const stream there(cuda(1));
    array y = make(there, 0);
    cuda(1).synchronize();
    device_flag later(context_of(cuda(1)));
    later.hold(static_cast<gpu::stream_handle>(handle_of(there)));
    const void* where = nullptr;
    {
        array x = make(here, 7);
        where = x.device_data();
        copy(there, y, x);
    }
    array next = make(here, 9);  // waits on the device if it lies there, and not on the host
    if (fake_cuda::in_use()) {
        EXPECT_EQ(next.device_data() == where, fake_cuda::calls("cuStreamWaitEvent") > 1);
    }
    later.raise();
    EXPECT_THAT(values_of<double>(y), Each(7));
    EXPECT_THAT(values_of<double>(next), Each(9));
}

TEST_F(CudaDevices, EachHasItsOwnMemoryAndGivesItBackToItself) {
    WEIR_NEEDS_FAKE();
    const std::size_t before_here = fake_cuda::bytes_in_use(0);
    const std::size_t before_there = fake_cuda::bytes_in_use(1);
    {
        const stream there(cuda(1));
        array large = empty({std::int64_t{1} << 24}, dtype::uint8, there);
        EXPECT_EQ(fake_cuda::bytes_in_use(0), before_here);
        EXPECT_GE(fake_cuda::bytes_in_use(1), before_there + (std::size_t{1} << 24));
        EXPECT_GE(memory::stats(cuda(1)).live, std::size_t{1} << 24);
    }
    memory::trim(cuda(1));
    EXPECT_EQ(fake_cuda::bytes_in_use(1), before_there);
}

constexpr std::int64_t large = std::int64_t{1} << 20;  ///< elements: memory that is new from the driver

/// Copies from an array of the first device to one of the second and back, on a stream of each.
void expect_copied_both_ways(array& x, array& y) {
    const stream here(cuda(0));
    const stream there(cuda(1));
    double value = 2;
    for (const stream& by : {here, there}) {
        fill(here, x, ++value);
        copy(by, y, x);
        EXPECT_EQ(values_of<double>(y), std::vector<double>(large, value));
        fill(there, y, ++value);
        copy(by, x, y);
        EXPECT_EQ(values_of<double>(x), std::vector<double>(large, value));
    }
}

TEST_F(CudaDevices, PeersReachEachOthersMemoryAtTheSameAddress) {
    array x = empty({large}, dtype::float64, stream(cuda(0)));
    if (fake_cuda::in_use()) {
        EXPECT_GT(fake_cuda::calls("cuMemSetAccess"), 0U) << "each device is given access";
    }
    array y = empty({large}, dtype::float64, stream(cuda(1)));
    expect_copied_both_ways(x, y);
    expect_calls("cuMemcpyAsync", 4, "straight from one to the other");
}

TEST_F(CudaDevices, WhatThePeerIsRefusedIsCopiedByTheDriversWayForIt) {
    WEIR_NEEDS_FAKE();
    constexpr int peer_access_unsupported = 217;
    fake_cuda::fail("cuMemSetAccess", 1, peer_access_unsupported);
    array x = empty({large}, dtype::float64, stream(cuda(0)));
    fake_cuda::fail_no_more();
    EXPECT_EQ(fake_cuda::calls("cuMemSetAccess"), 2U) << "the device itself has access then";
    array y = empty({large}, dtype::float64, stream(cuda(1)));
    expect_copied_both_ways(x, y);
    EXPECT_EQ(fake_cuda::calls("cuMemcpyPeerAsync"), 2U) << "by the stream of the device that was refused";
    EXPECT_EQ(fake_cuda::calls("cuMemcpyAsync"), 2U) << "by that of its owner";
}

TEST_F(CudaDevices, MemoryOfTheDriversPoolsIsCopiedBetweenThem) {
    const memory::use scope(memory::driver_pool());
    array x = empty({large}, dtype::float64, stream(cuda(0)));
    array y = empty({large}, dtype::float64, stream(cuda(1)));
    expect_copied_both_ways(x, y);
    expect_calls("cuMemcpyPeerAsync", 4, "each pool is its device's alone");
}

// --- pinned and managed memory -------------------------------------------------------------------------------------

TEST_F(CudaDevices, L6PinnedAndManagedMemoryHasItsOwnFigures) {
    const auto expect_figures = [](const device& of, const memory::resource_ptr& from) {
        const stream s(of);
        const auto shared = [&] { return memory::stats(of, memory::pool_kind::shared); };
        memory::trim(of);
        const std::size_t own = memory::stats(of).live;
        const std::size_t before = shared().live;
        {
            const memory::use scope(from);
            array x = empty({std::int64_t{1} << 20}, dtype::uint8, s);
            EXPECT_EQ(shared().live, before + (std::size_t{1} << 20));
            EXPECT_EQ(memory::stats(of).live, own) << "the device's own pool has nothing to do with it";
            EXPECT_GE(shared().peak, shared().live);
        }
        EXPECT_EQ(shared().live, before);
        EXPECT_GE(shared().cached, std::size_t{1} << 20);
        memory::trim(of);
        EXPECT_EQ(shared().cached, 0U);
    };
    expect_figures(cpu(), memory::pinned());
    expect_figures(cuda(0), memory::managed());
    expect_figures(cuda(1), memory::managed());
    EXPECT_EQ(memory::stats(sim(5), memory::pool_kind::shared).limit, 0U) << "there is none";
}

}  // namespace
}  // namespace weir::test
