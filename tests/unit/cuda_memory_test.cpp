// Memory for CUDA devices beside the pool: pinned, managed, and in the driver's own stream order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/cuda/api/driver_api.hpp"
#include "backend/cuda/device/context.hpp"
#include "backend/waiting_host.hpp"
#include "memory/device_memory.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/lifetime/reaper.hpp"
#include "support/messages.hpp"
#include "unit/cuda_support.hpp"
#include "weir/capture.hpp"
#include "weir/dlpack.hpp"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr int concurrent_managed_access = 89;
constexpr int virtual_memory_management = 102;
constexpr std::size_t mib = std::size_t{1} << 20;
/// These count calls of the fake driver and hold its streams.
class L6CudaMemory : public ::testing::Test {
protected:
    void SetUp() override {
        if (!fake_cuda::in_use()) {
            GTEST_SKIP() << "needs the gates and counters of the fake driver";
        }
        fill(device_, x_, 1);
        cuda().synchronize();
        fake_cuda::forget_calls();
    }
    void TearDown() override {
        if (fake_cuda::in_use()) {
            fake_cuda::open_all();
            fake_cuda::set_total_memory(std::size_t{1} << 32);
            fake_cuda::set_attribute(concurrent_managed_access, 1);
            // Dropped memory is back before another test counts.
            runtime::reaper::wait_until_empty();
            const gpu::context here(*gpu::machine_driver().api, 0);
            const gpu::in_context scope(here);
            EXPECT_EQ(here.api().context_synchronize(), gpu::success);
        }
    }
    array on_host(double value, const memory::resource_ptr& from) const {
        const memory::use scope(from);
        return full(elements, value, dtype::float64, host_);
    }
    array on_device(double value, const memory::resource_ptr& from) const {
        const memory::use scope(from);
        return full(elements, value, dtype::float64, device_);
    }
    /// Waits until the function was called so often.
    static void await_calls(const char* name, unsigned long long count) {
        while (fake_cuda::calls(name) < count) {
            std::this_thread::yield();
        }
    }

    stream host_{cpu()};
    stream device_{cuda()};
    array x_ = make(device_, 0);
};

// --- pinned -------------------------------------------------------------------------------------------------------

TEST_F(L6CudaMemory, PinnedArraysAreCopiedByTheDriver) {
    array pinned = on_host(7, memory::pinned());
    host_.synchronize();
    array back = on_host(0, memory::pinned());
    host_.synchronize();
    {
        const fake_gate held(handle_of(device_));
        copy(device_, x_, pinned);
        copy(device_, back, x_);
        EXPECT_EQ(fake_cuda::calls("cuMemcpyAsync"), 2U) << "in the stream already, though nothing runs there";
        fill(host_, pinned, 8);  // after the copy that reads it
        EXPECT_FALSE(pinned.ready());
        EXPECT_FALSE(back.ready());
    }
    EXPECT_THAT(values_of<double>(back), Each(7));
    EXPECT_THAT(values_of<double>(pinned), Each(8));
    EXPECT_EQ(fake_cuda::calls("cuMemcpyHtoDAsync_v2") + fake_cuda::calls("cuMemcpyDtoHAsync_v2"), 0U);
}

TEST_F(L6CudaMemory, ControlOrdinaryArraysAreCopiedByAThread) {
    array plain = on_host(7, {});
    copy(device_, x_, plain);
    EXPECT_THAT(values_of<double>(x_), Each(7));
    EXPECT_EQ(fake_cuda::calls("cuMemcpyAsync"), 0U);
    EXPECT_GT(fake_cuda::calls("cuMemcpyHtoDAsync_v2"), 0U);
}

TEST_F(L6CudaMemory, PinnedMemoryIsKeptAndThenGivenBackWithoutAWait) {
    memory::trim(cpu());
    memory::shared_pool_of(cpu().state(detail::key)).source().await_given_back();
    const auto pinned = [] { return fake_cuda::live(fake_thing::pinned_allocations); };
    array first = on_host(1, memory::pinned());
    host_.synchronize();
    first = {};
    const auto allocated = fake_cuda::calls("cuMemHostAlloc");
    array second = on_host(2, memory::pinned());
    host_.synchronize();
    EXPECT_EQ(fake_cuda::calls("cuMemHostAlloc"), allocated) << "the same piece";
    second = {};
    const std::size_t before = pinned();
    {
        const fake_gate held(handle_of(device_));
        fill(device_, x_, 2);
        memory::trim(cpu());
        await_calls("cuMemFreeHost", 1);
        EXPECT_EQ(pinned(), before) << "control: the driver itself waits for the device";
    }
    while (pinned() == before) {
        std::this_thread::yield();
    }
    EXPECT_EQ(pinned(), before - 1);
}

TEST_F(L6CudaMemory, ArraysThatCannotBePinnedOrManagedAreRefused) {
    const auto make_on = [](const device& where, const memory::resource_ptr& from) {
        return message_of<argument_error>([&] {
            const memory::use scope(from);
            static_cast<void>(empty(elements, dtype::float64, stream(where)));
        });
    };
    EXPECT_THAT(make_on(cuda(), memory::pinned()), HasSubstr("pinned memory is the host's"));
    EXPECT_THAT(make_on(sim(0), memory::pinned()), HasSubstr("pinned memory is the host's"));
    EXPECT_THAT(make_on(cpu(), memory::managed()), HasSubstr("managed memory is a CUDA device's"));
    EXPECT_THAT(make_on(cpu(), memory::pinned()), HasSubstr("nothing was thrown")) << "control";
}

TEST_F(L6CudaMemory, AdaptorsWorkOverThem) {
    const auto counted = memory::counting(memory::limiting(mib, memory::pinned()));
    array pinned = on_host(1, counted);
    EXPECT_EQ(counted->counts().live.bytes, pinned.nbytes());
    EXPECT_TRUE(pinned.buffer().pinned(detail::key));
    EXPECT_THROW(static_cast<void>(counted->allocate(2 * mib, host_)), out_of_memory);
    const auto managed = memory::counting(memory::managed());
    EXPECT_TRUE(on_device(1, managed).buffer().host_reachable(detail::key));
    const auto ordered = memory::counting(memory::driver_pool());
    array last = on_device(1, ordered);
    EXPECT_EQ(ordered->counts().live.bytes, last.nbytes());
}

// --- managed ------------------------------------------------------------------------------------------------------

TEST_F(L6CudaMemory, ManagedArraysAreReachedByTheHost) {
    array managed = on_device(3, memory::managed());
    {
        const host_view<double> seen = managed.write<double>();
        EXPECT_EQ(static_cast<const void*>(seen.span().data()), managed.device_data()) << "the memory itself";
        EXPECT_THAT(seen.span(), Each(3));
        seen[0] = 4;
    }
    step_in_place(device_, managed);
    EXPECT_EQ(values_of<double>(managed).front(), 41);
    EXPECT_EQ(values_of<double>(managed).back(), 31);
    EXPECT_THROW(static_cast<void>(x_.write<double>()), argument_error) << "control";
}

// --- memory of several devices --------------------------------------------------------------------------------------

using exchange::dlpack::device_type;

TEST_F(L6CudaMemory, X9PinnedAndManagedArraysAreSeenFromEachOfTheirDevices) {
    array pinned = on_host(1, memory::pinned());
    array managed = on_device(2, memory::managed());
    EXPECT_EQ(pinned.devices().front(), cpu());
    EXPECT_THAT(pinned.devices(), ::testing::Contains(cuda()));
    EXPECT_THAT(managed.devices(), ::testing::ElementsAre(cuda(), cpu()));
    EXPECT_THAT(x_.devices(), ::testing::ElementsAre(cuda()));
    array from_device = pinned.view_on(cuda());
    array from_host = managed.view_on(cpu());
    EXPECT_EQ(from_device.device(), cuda());
    EXPECT_EQ(from_device.device_data(), pinned.device_data());
    EXPECT_EQ(from_device.view_on(cpu()).device(), cpu());
    EXPECT_EQ(from_host.slice(0, 1).device(), cpu()) << "a part stays with the device";
    {
        const fake_gate held(handle_of(device_));
        step_in_place(device_, from_device);
        EXPECT_FALSE(pinned.ready()) << "one memory, one history";
    }
    EXPECT_EQ(values_of<double>(pinned).front(), 11);
    copy(host_, from_host, pinned);
    EXPECT_EQ(values_of<double>(managed).front(), 11);
    EXPECT_THROW(static_cast<void>(x_.view_on(cpu())), copy_error);
    EXPECT_THROW(static_cast<void>(managed.view_on(sim(0))), copy_error);
}

TEST_F(L6CudaMemory, X9ATensorNamesTheDeviceThatWasAskedFor) {
    array pinned = on_host(1, memory::pinned());
    array managed = on_device(2, memory::managed());
    const auto named = [](const array& x, exchange::dlpack::device as) {
        const exchange::dlpack_tensor made = exchange::to_dlpack(x, {}, as);
        EXPECT_EQ(made->what.data, x.device_data());
        return std::pair(made->what.on.type, made->what.on.id);
    };
    EXPECT_EQ(named(pinned, {device_type::cpu, 0}), std::pair(device_type::cpu, 0));
    EXPECT_EQ(named(pinned, {device_type::cuda, 0}), std::pair(device_type::cuda, 0));
    EXPECT_EQ(named(pinned, {device_type::cuda_host, 0}), std::pair(device_type::cuda_host, 0));
    EXPECT_EQ(named(managed, {device_type::cpu, 0}), std::pair(device_type::cpu, 0));
    EXPECT_EQ(named(managed, {device_type::cuda_managed, 0}), std::pair(device_type::cuda_managed, 0));
    for (const auto& [x, as] : std::initializer_list<std::pair<const array&, exchange::dlpack::device>>{
             {pinned, {device_type::cpu, 1}},
             {pinned, {device_type::cuda_managed, 0}},
             {managed, {device_type::cuda_host, 0}},
             {x_, {device_type::cuda_managed, 0}},
             {x_, {device_type::cpu, 0}}}) {
        EXPECT_THROW(static_cast<void>(exchange::to_dlpack(x, {}, as)), copy_error);
    }
    // What a consumer had stays in quarantine up to here.
    pinned = {};
    managed = {};
    runtime::reaper::wait_until_empty();
    safe_point();
}

/// Reads a managed array while a stream that Weir does not know is held.
class O6ManagedMemory : public L6CudaMemory {
protected:
    /// `meanwhile` runs once the reader has started. If it returns true, the reader must be done before the stream is opened.
    template <class Meanwhile>
    void read_while_the_device_is_busy(bool concurrent, Meanwhile meanwhile) {
        array managed = on_device(3, memory::managed());
        device_.synchronize();
        fake_cuda::set_attribute(concurrent_managed_access, concurrent ? 1 : 0);
        const gpu::driver_api& api = *gpu::machine_driver().api;
        const gpu::context here(api, 0);
        const gpu::in_context scope(here);
        gpu::stream_handle others = nullptr;
        ASSERT_EQ(api.stream_create(&others, gpu::stream_non_blocking, 0), gpu::success);
        gpu::device_pointer memory = 0;
        ASSERT_EQ(api.memory_alloc(&memory, 64), gpu::success);
        std::atomic<bool> over{false};
        std::thread reader;
        {
            const fake_gate held(others);
            ASSERT_EQ(api.fill8_async(memory, 0, 64, others), gpu::success);
            reader = std::thread([&] {
                EXPECT_THAT(values_of<double>(managed), Each(3));
                over = true;
            });
            meanwhile(over, reader);
        }
        if (reader.joinable()) {
            reader.join();
        }
        EXPECT_EQ(api.memory_free(memory), gpu::success);
        EXPECT_EQ(api.stream_destroy(others), gpu::success);
    }
};

TEST_F(O6ManagedMemory, WaitsForTheDeviceWhereBothCannotUseItAtOnce) {
    read_while_the_device_is_busy(false, [](const std::atomic<bool>& over, std::thread& /*reader*/) {
        await_calls("cuCtxSynchronize", 1);
        EXPECT_FALSE(over);
    });
}

TEST_F(O6ManagedMemory, ControlDoesNotWaitWhereTheyCan) {
    read_while_the_device_is_busy(true, [](const std::atomic<bool>& over, std::thread& reader) {
        reader.join();
        EXPECT_TRUE(over);
    });
    EXPECT_EQ(fake_cuda::calls("cuCtxSynchronize"), 0U);
}

// --- the driver's pool --------------------------------------------------------------------------------------------

TEST_F(L6CudaMemory, StreamOrderedMemoryGoesBackInItsStream) {
    array ordered = on_device(5, memory::driver_pool());
    EXPECT_EQ(fake_cuda::calls("cuMemAllocAsync"), 1U);
    device_.synchronize();
    {
        const fake_gate held(handle_of(device_));
        step(device_, x_, ordered);
        ordered = {};
        await_calls("cuMemFreeAsync", 1);
        EXPECT_FALSE(x_.ready()) << "it was dropped in use";
    }
    EXPECT_THAT(values_of<double>(x_), Each(51));
    runtime::reaper::wait_until_empty();
    EXPECT_EQ(fake_cuda::calls("cuMemFreeAsync"), 1U);
}

TEST_F(L6CudaMemory, StreamOrderedMemoryInUseOnTwoStreamsWaitsForBoth) {
    const stream second(cuda());
    array y = make(second, 0);
    array ordered = on_device(5, memory::driver_pool());
    cuda().synchronize();
    {
        const fake_gate first_held(handle_of(device_));
        step(device_, x_, ordered);
        {
            const fake_gate second_held(handle_of(second));
            step(second, y, ordered);
            ordered = {};
            EXPECT_EQ(runtime::reaper::held(), 1U);
            EXPECT_EQ(fake_cuda::calls("cuMemFreeAsync"), 0U);
        }
        EXPECT_THAT(values_of<double>(y), Each(51));
    }
    EXPECT_THAT(values_of<double>(x_), Each(51));
    runtime::reaper::wait_until_empty();
    EXPECT_EQ(fake_cuda::calls("cuMemFreeAsync"), 1U);
}

TEST_F(L6CudaMemory, OtherStreamsComeAfterTheAllocation) {
    const stream second(cuda());
    cuda().synchronize();
    const fake_gate held(handle_of(device_));
    const memory::use scope(memory::driver_pool());
    array ordered = empty(elements, dtype::float64, device_);
    fill(second, ordered, 1);
    EXPECT_GT(fake_cuda::calls("cuStreamWaitEvent"), 0U);
    EXPECT_GT(fake_cuda::pending(handle_of(second)), 0U) << "it waits for the stream that is held";
    fake_cuda::forget_calls();
    const memory::use pools(nullptr);
    array plain = empty(elements, dtype::float64, device_);
    fill(stream(cuda()), plain, 2);
    EXPECT_THAT(values_of<double>(plain), Each(2)) << "control: the pool's memory is there at once";
}

TEST_F(L6CudaMemory, TrimmingGivesBackWhatTheDriverKeeps) {
    array ordered = on_device(5, memory::driver_pool());
    device_.synchronize();
    ordered = {};
    runtime::reaper::wait_until_empty();
    cuda().synchronize();
    fake_cuda::forget_calls();
    memory::trim(cuda());
    EXPECT_EQ(fake_cuda::calls("cuMemPoolTrimTo"), 1U);
    static_cast<void>(cuda(1));
    memory::trim(cuda(1));
    EXPECT_EQ(fake_cuda::calls("cuMemPoolTrimTo"), 1U) << "control: where Weir never used it, it is somebody else's";
}

// --- shortage -----------------------------------------------------------------------------------------------------

TEST_F(L6CudaMemory, MemoryThatAnotherProgramTookIsMissingAndComesBack) {
    const auto ask = [&] { return buffer(64 * mib, device_); };
    const auto ask_driver = [&] { return memory::driver_pool()->allocate(64 * mib, device_); };
    fake_cuda::set_total_memory(fake_cuda::bytes_in_use(0) + 8 * mib);
    const auto says_all =
        AllOf(HasSubstr("out of memory on cuda:0"), HasSubstr(std::to_string(64 * mib)), HasSubstr(" cached"),
              HasSubstr("The driver has "), HasSubstr("torch.cuda.empty_cache()"), HasSubstr("free_all_blocks()"));
    EXPECT_THAT(message_of<out_of_memory>(ask), says_all);
    EXPECT_THAT(message_of<out_of_memory>(ask_driver), says_all);
    EXPECT_THAT(message_of<out_of_memory>([] { static_cast<void>(buffer(std::size_t{1} << 60)); }),
                Not(HasSubstr("torch")))
        << "control: on the CPU";
    fake_cuda::set_total_memory(std::size_t{1} << 32);
    EXPECT_EQ(ask().bytes(), 64 * mib);
    EXPECT_EQ(ask_driver().bytes(), 64 * mib);
    cuda().synchronize();
}

/// On a device that has 100 MiB left once Weir keeps none.
class L6CudaShortage : public L6CudaMemory {
protected:
    void SetUp() override {
        L6CudaMemory::SetUp();
        if (fake_cuda::in_use()) {
            memory::give_back_all(cuda().state(detail::key));
            in_use_before_ = fake_cuda::bytes_in_use(0);
            fake_cuda::set_total_memory(in_use_before_ + 100 * mib);
        }
    }
    /// From now on the driver's pool has what was dropped. It would not keep that if the host waited for a stream.
    void settle() const {
        runtime::reaper::wait_until_empty();
        fake_cuda::settle(handle_of(device_));
        fake_cuda::settle(cuda_context().own_stream());
    }
    [[nodiscard]] std::size_t kept() const { return fake_cuda::bytes_in_use(0) - in_use_before_; }
    /// Asks while the device is busy, so that memory whose return waits for the driver is on its way.
    template <class Ask>
    void expect_to_wait(Ask ask) {
        fake_gate busy(handle_of(device_));
        fill(device_, x_, 2);
        std::atomic<bool> over{false};
        std::thread asks([&] {
            EXPECT_NO_THROW(ask());
            over = true;
        });
        while (!over && !backend::waiting_host::any()) {
            std::this_thread::yield();
        }
        EXPECT_FALSE(over) << "there is no memory before the device is done";
        busy.open();
        asks.join();
    }
    void ask(const memory::resource_ptr& of, std::size_t bytes) const {
        of ? of->allocate(bytes, device_) : buffer(bytes, device_);
    }

private:
    std::size_t in_use_before_ = 0;
};

TEST_F(L6CudaShortage, WhatWeirKeepsElsewhereIsNotMissing) {
    const std::vector<memory::resource_ptr> all{nullptr, memory::managed(), memory::driver_pool()};
    for (const auto& keeps : all) {
        for (const auto& wants : all) {
            ask(keeps, 64 * mib);
            settle();
            EXPECT_GE(kept(), 64 * mib) << "control";
            EXPECT_NO_THROW(ask(wants, 64 * mib));
            settle();
        }
    }
}

TEST_F(L6CudaShortage, WhatIsOnItsWayBackIsWaitedFor) {
    ask(memory::managed(), 64 * mib);
    expect_to_wait([&] { ask(memory::managed(), 96 * mib); });
    expect_to_wait([&] { ask(nullptr, 64 * mib); });
}

TEST_F(L6CudaShortage, WhereTheLimitIsInTheWayOthersKeepWhatTheyHave) {
    const auto cached = [] { return memory::stats(cuda(), memory::pool_kind::shared).cached; };
    ask(memory::managed(), 64 * mib);
    const std::size_t before = cached();
    EXPECT_GE(before, 64 * mib);
    memory::limit(cuda(), 8 * mib);
    EXPECT_THROW(ask(nullptr, 64 * mib), out_of_memory);
    EXPECT_EQ(cached(), before);
    memory::limit(cuda(), ~std::size_t{0});
    ask(nullptr, 64 * mib);
    EXPECT_EQ(cached(), 0U) << "control";
}

TEST_F(L6CudaShortage, TheMessageCountsWhatIsElsewhere) {
    const buffer managed = memory::managed()->allocate(32 * mib, device_);
    const buffer of_driver = memory::driver_pool()->allocate(16 * mib, device_);
    const auto message = [&](const memory::resource_ptr& of) {
        return message_of<out_of_memory>([&] { ask(of, 128 * mib); });
    };
    const auto live = [](std::size_t bytes) { return " holds " + std::to_string(bytes) + " bytes live, "; };
    const auto shared = HasSubstr("Weir's pool of cuda:0 (managed)" + live(32 * mib));
    const auto own = HasSubstr("Weir's pool of cuda:0" + live(memory::stats(cuda()).live));
    const auto of_the_driver = HasSubstr("The driver's pool holds " + std::to_string(16 * mib) + " bytes, of which " +
                                         std::to_string(16 * mib) + " are in use. The driver has ");
    EXPECT_THAT(message(nullptr), AllOf(shared, of_the_driver, Not(own)));
    EXPECT_THAT(message(memory::managed()), AllOf(own, of_the_driver, Not(shared)));
    EXPECT_THAT(message(memory::driver_pool()), AllOf(own, shared, of_the_driver));
}

// --- a broken context ---------------------------------------------------------------------------------------------

/// In a process of its own: asks a device whose context is broken, and that has no memory left, for memory that is dropped at once.
void expect_told_that_the_context_is_lost(bool maps_memory, buffer (*ask)(const stream& device, const stream& host)) {
    EXPECT_EXIT(
        {
            fake_cuda::set_attribute(virtual_memory_management, maps_memory ? 1 : 0);
            const stream device(cuda());
            const stream host(cpu());
            fake_cuda::break_contexts(719);
            fake_cuda::set_total_memory(fake_cuda::bytes_in_use(0) + 8 * mib);
            const std::string told = message_of<device_error>([&] { static_cast<void>(ask(device, host)); });
            std::fprintf(stderr, "%s\n", told.c_str());
            std::exit(told.find("the CUDA context of device 0 is lost") == 0 ? 0 : 1);
        },
        ::testing::ExitedWithCode(0), "start it again");
}

TEST(L6CudaBrokenDeathTest, ItIsNotMemoryThatIsMissing) {
    WEIR_NEEDS_FAKE();
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto from_pool = [](const stream& device, const stream& /*host*/) { return buffer(64 * mib, device); };
    const auto from_driver = [](const stream& device, const stream& /*host*/) {
        return memory::driver_pool()->allocate(64 * mib, device);
    };
    const auto managed = [](const stream& device, const stream& /*host*/) {
        return memory::managed()->allocate(64 * mib, device);
    };
    const auto pinned = [](const stream& /*device*/, const stream& host) {
        return memory::pinned()->allocate(64 * mib, host);
    };
    expect_told_that_the_context_is_lost(true, from_pool);
    expect_told_that_the_context_is_lost(false, from_pool);
    expect_told_that_the_context_is_lost(true, from_driver);
    expect_told_that_the_context_is_lost(true, managed);
    expect_told_that_the_context_is_lost(true, pinned);
}

}  // namespace
}  // namespace weir::test
