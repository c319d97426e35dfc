// The pool's chunks on a CUDA device: giving them back waits for nothing (rule L6).
#include <gtest/gtest.h>

#include <atomic>
#include <initializer_list>
#include <memory>
#include <thread>
#include <vector>

#include "backend/cuda/device/driver.hpp"
#include "memory/pool.hpp"
#include "order_support.hpp"
#include "unit/fake_cuda_support.hpp"

namespace weir::test {
namespace {

constexpr int virtual_memory_management = 102;
constexpr std::size_t mib = std::size_t{1} << 20;

class CudaChunks : public fake_cuda_test {
protected:
    void SetUp() override {
        if (!fake_cuda::in_use()) {
            GTEST_SKIP() << "asks the fake driver";
        }
        fake_cuda_test::SetUp();
        before_ = fake_cuda::bytes_in_use(0);
        ranges_before_ = fake_cuda::live(fake_thing::address_ranges);
        created_before_ = fake_cuda::live(fake_thing::created_memory);
    }
    void TearDown() override {
        if (!fake_cuda::in_use()) {
            return;
        }
        fake_cuda::set_attribute(virtual_memory_management, 1);
        fake_cuda::set_total_memory(std::size_t{1} << 32);
        fake_cuda_test::TearDown();
        EXPECT_EQ(fake_cuda::bytes_in_use(0), before_);
        EXPECT_EQ(ranges(), 0U);
        EXPECT_EQ(created(), 0U);
    }

    /// A device in the state in which a process begins.
    static backend::driver& make_device(int virtual_memory) {
        fake_cuda::set_attribute(virtual_memory_management, virtual_memory);
        // Lives for ever, and a leak checker can see it.
        static auto* const all = new std::vector<std::unique_ptr<cuda_driver>>();
        all->push_back(std::make_unique<cuda_driver>(*machine_driver().api, 0));
        return *all->back();
    }
    /// Takes memory from the pool and gives it back, complete.
    static void use_and_drop(memory::pool& of) {
        const memory::pool::answer got = of.take(10 * mib, {1, order::test::clock_of({})});
        ASSERT_NE(got.taken, nullptr);
        of.put(*got.taken);
    }
    [[nodiscard]] std::size_t in_use() const { return fake_cuda::bytes_in_use(0) - before_; }

    /// Of this test's devices.
    [[nodiscard]] std::size_t ranges() const { return fake_cuda::live(fake_thing::address_ranges) - ranges_before_; }
    [[nodiscard]] std::size_t created() const { return fake_cuda::live(fake_thing::created_memory) - created_before_; }

    order::test::set_watermarks completed_;

private:
    std::size_t before_ = 0;
    std::size_t ranges_before_ = 0;
    std::size_t created_before_ = 0;
};

TEST_F(CudaChunks, TrimmingWaitsForNoStream) {
    memory::pool tested(make_device(1), completed_);
    use_and_drop(tested);
    EXPECT_GE(in_use(), 10 * mib);
    const stream_handle busy = make_stream();
    const device_pointer other = allocate(64);
    {
        const fake_gate gate(busy);
        ASSERT_EQ(api.fill8_async(other, 0, 64, busy), success);
        tested.trim();
        EXPECT_EQ(fake_cuda::pending(busy), 1U);
        EXPECT_EQ(in_use(), 64U) << "what is left is the stream's";
    }
    EXPECT_EQ(api.memory_free(other), success);
    EXPECT_EQ(api.stream_destroy(busy), success);
}

TEST_F(CudaChunks, ControlWithoutMappedMemoryItWaitsForAllStreams) {
    memory::pool tested(make_device(0), completed_);
    use_and_drop(tested);
    EXPECT_EQ(created(), 0U);
    const std::size_t held = in_use();
    const stream_handle busy = make_stream();
    const device_pointer other = allocate(64);
    std::atomic<bool> over{false};
    std::thread trims;
    {
        const fake_gate gate(busy);
        ASSERT_EQ(api.fill8_async(other, 0, 64, busy), success);
        trims = std::thread([&] {
            tested.trim();
            over = true;
        });
        while (fake_cuda::calls("cuMemFree_v2") == 0) {
            std::this_thread::yield();
        }
        EXPECT_FALSE(over) << "the call cannot return before the stream is done";
        EXPECT_EQ(in_use(), held + 64);
    }
    trims.join();
    EXPECT_EQ(in_use(), 64U);
    EXPECT_EQ(api.memory_free(other), success);
    EXPECT_EQ(api.stream_destroy(busy), success);
}

TEST_F(CudaChunks, AreReachedByTheDevicesThatCan) {
    memory::pool tested(make_device(1), completed_);
    fake_cuda::fail("cuMemSetAccess", 1, error_not_supported);
    use_and_drop(tested);
    EXPECT_EQ(fake_cuda::calls("cuMemSetAccess"), 2U) << "refused for all, so for the device alone";
    tested.trim();
    fake_cuda::forget_calls();
    use_and_drop(tested);
    EXPECT_EQ(fake_cuda::calls("cuMemSetAccess"), 1U) << "control";
}

TEST_F(CudaChunks, AreWholeOrNotThereAtAll) {
    backend::driver& device = make_device(1);
    for (const char* each : {"cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess"}) {
        fake_cuda::fail(each, 1, error_out_of_memory);
        EXPECT_EQ(device.allocate(3 * mib).address, nullptr) << each;
        EXPECT_EQ(in_use(), 0U) << each;
        EXPECT_EQ(ranges(), 0U) << each;
        const backend::memory_chunk next = device.allocate(3 * mib);
        EXPECT_NE(next.address, nullptr) << "control: the next is there, after " << each;
        EXPECT_EQ(in_use(), 4 * mib) << "whole units of the device";
        device.deallocate(next, 3 * mib);
    }
}

TEST_F(CudaChunks, MemoryThatOthersTakeIsMissingAndComesBack) {
    memory::pool tested(make_device(1), completed_);
    fake_cuda::set_total_memory(fake_cuda::bytes_in_use(0) + 8 * mib);
    const auto ask = [&] { return tested.take(10 * mib, {1, order::test::clock_of({})}); };
    EXPECT_EQ(ask().taken, nullptr);
    fake_cuda::set_total_memory(fake_cuda::bytes_in_use(0) + 16 * mib);
    const memory::pool::answer got = ask();
    ASSERT_NE(got.taken, nullptr);
    tested.put(*got.taken);
}

}  // namespace
}  // namespace weir::test
