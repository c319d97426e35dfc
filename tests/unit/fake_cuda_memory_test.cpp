// The fake CUDA driver's memory: allocation, copies and fills.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "unit/fake_cuda_support.hpp"

namespace weir::test {
namespace {

using ::testing::Each;

class fake_cuda_memory : public fake_cuda_test {
protected:
    void SetUp() override {
        fake_cuda_test::SetUp();
        stream = make_stream();
        memory = allocate(bytes);
    }
    void TearDown() override {
        fake_cuda_test::TearDown();
        fake_cuda::set_total_memory(std::size_t{1} << 32);
        if (memory != 0) {
            EXPECT_EQ(api.memory_free(memory), success);
        }
        EXPECT_EQ(api.stream_destroy(stream), success);
    }
    std::vector<unsigned char> contents() const {
        std::vector<unsigned char> got(bytes);
        EXPECT_EQ(api.copy_to_host_async(got.data(), memory, bytes, stream), success);
        return got;
    }

    static constexpr std::size_t bytes = 4096;
    stream_handle stream = nullptr;
    device_pointer memory = 0;
};

TEST_F(fake_cuda_memory, fills_write_whole_values) {
    ASSERT_EQ(api.fill8_async(memory, 0x11, bytes, stream), success);
    EXPECT_THAT(contents(), Each(0x11));
    ASSERT_EQ(api.fill16_async(memory, 0x2222, bytes / 2, stream), success);
    EXPECT_THAT(contents(), Each(0x22));
    ASSERT_EQ(api.fill32_async(memory + 4, 0x33333333, bytes / 4 - 1, stream), success);
    auto expected = std::vector<unsigned char>(bytes, 0x33);
    std::fill(expected.begin(), expected.begin() + 4, 0x22);
    EXPECT_EQ(contents(), expected);
    EXPECT_EQ(api.fill32_async(memory + 2, 0, 1, stream), error_invalid_value) << "not aligned";
    EXPECT_EQ(api.fill8_async(memory, 0, bytes + 1, stream), error_invalid_value) << "too long";
}

TEST_F(fake_cuda_memory, what_is_allocated_is_not_zero) { EXPECT_THAT(contents(), Each(0xa5)); }

TEST_F(fake_cuda_memory, copies_from_ordinary_memory_take_their_copy_at_once) {
    ASSERT_EQ(api.fill8_async(memory, 0, bytes, stream), success);
    std::vector<unsigned char> host(bytes, 1);
    ASSERT_EQ(api.copy_to_device_async(memory, host.data(), bytes, stream), success);
    EXPECT_EQ(api.stream_query(stream), success) << "and wait for the stream";
    std::fill(host.begin(), host.end(), 2);
    EXPECT_THAT(contents(), Each(1));
}

TEST_F(fake_cuda_memory, copies_from_pinned_memory_read_it_later) {
    auto* const pinned = allocate_pinned<unsigned char>(bytes);
    std::memset(pinned, 1, bytes);
    {
        const fake_gate gate(stream);
        ASSERT_EQ(api.copy_to_device_async(memory, pinned, bytes, stream), success);
        EXPECT_EQ(api.stream_query(stream), error_not_ready);
        std::memset(pinned, 2, bytes);
    }
    EXPECT_THAT(contents(), Each(2));
    {
        const fake_gate gate(stream);
        ASSERT_EQ(api.fill8_async(memory, 3, bytes, stream), success);
        ASSERT_EQ(api.copy_to_host_async(pinned, memory, bytes, stream), success);
        EXPECT_EQ(pinned[0], 2);
    }
    EXPECT_EQ(api.stream_synchronize(stream), success);
    EXPECT_EQ(pinned[0], 3);
    EXPECT_EQ(api.host_free(pinned), success);
}

TEST_F(fake_cuda_memory, copies_to_ordinary_memory_are_over_when_they_return) {
    ASSERT_EQ(api.fill8_async(memory, 4, bytes, stream), success);
    EXPECT_THAT(contents(), Each(4));
}

TEST_F(fake_cuda_memory, ranges_that_are_not_in_an_allocation_are_refused) {
    std::vector<unsigned char> host(bytes + 1);
    EXPECT_EQ(api.copy_to_device_async(memory, host.data(), bytes + 1, stream), error_invalid_value);
    EXPECT_EQ(api.copy_to_host_async(host.data(), memory + bytes - 1, 2, stream), error_invalid_value);
    EXPECT_EQ(api.copy_to_host_async(host.data(), 0, 1, stream), error_invalid_value);
    EXPECT_EQ(api.copy_to_host_async(host.data(), memory + bytes - 1, 1, stream), success);
    EXPECT_EQ(api.copy_async(memory, memory + 1, bytes, stream), error_invalid_value);
}

TEST_F(fake_cuda_memory, copies_between_devices_name_the_contexts_of_their_memory) {
    ASSERT_EQ(api.context_set_current(on_device(1).handle()), success);
    const device_pointer other = allocate(bytes);
    const stream_handle there = make_stream();
    ASSERT_EQ(api.fill8_async(other, 5, bytes, there), success);
    const auto here = on_device(0).handle();
    const auto from = on_device(1).handle();
    EXPECT_EQ(api.copy_peer_async(memory, from, other, here, bytes, there), error_invalid_value);
    EXPECT_EQ(api.copy_peer_async(memory, here, other, from, bytes, there), success);
    EXPECT_EQ(api.stream_synchronize(there), success);
    EXPECT_THAT(contents(), Each(5));
    EXPECT_EQ(api.memory_free(other), success);
    EXPECT_EQ(api.stream_destroy(there), success);
}

TEST_F(fake_cuda_memory, peer_access_is_enabled_once) {
    int can = 0;
    EXPECT_EQ(api.device_can_access_peer(&can, 0, 1), success);
    EXPECT_EQ(can, 1);
    EXPECT_EQ(api.device_can_access_peer(&can, 0, 0), success);
    EXPECT_EQ(can, 0);
    const result first = api.context_enable_peer_access(on_device(1).handle(), 0);
    EXPECT_TRUE(first == success || first == error_peer_access_already_enabled);
    EXPECT_EQ(api.context_enable_peer_access(on_device(1).handle(), 0), error_peer_access_already_enabled);
}

TEST_F(fake_cuda_memory, freeing_waits_for_the_device) {
    fake_gate gate(stream);
    ASSERT_EQ(api.fill8_async(memory, 1, bytes, stream), success);
    const device_pointer freed = allocate(bytes);
    std::atomic<bool> opened = false;
    const unsigned long long calls = fake_cuda::calls("cuMemFree_v2");
    std::thread freeing([&] {
        ASSERT_EQ(api.context_set_current(on_device(0).handle()), success);
        EXPECT_EQ(api.memory_free(freed), success);
        EXPECT_TRUE(opened);
    });
    while (fake_cuda::calls("cuMemFree_v2") == calls) {
        std::this_thread::yield();
    }
    const stream_handle other = make_stream();
    for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(api.fill8_async(freed, 1, bytes, other), success) << "it is still there";
        ASSERT_EQ(api.stream_synchronize(other), success);
    }
    opened = true;
    gate.open();
    freeing.join();
    EXPECT_EQ(api.fill8_async(freed, 1, bytes, other), error_invalid_value);
    EXPECT_EQ(api.memory_free(freed), error_invalid_value) << "twice";
    EXPECT_EQ(api.stream_destroy(other), success);
}

using fake_cuda_memory_death = fake_cuda_memory;

TEST_F(fake_cuda_memory_death, memory_that_was_freed_cannot_be_touched) {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    const auto touch = [](device_pointer at) { *reinterpret_cast<volatile unsigned char*>(at) = 1; };
    touch(memory);
    EXPECT_DEATH(
        {
            EXPECT_EQ(api.memory_free(memory), success);
            touch(memory);
        },
        "");
    EXPECT_DEATH(
        {
            device_pointer pooled = 0;
            EXPECT_EQ(api.memory_alloc_async(&pooled, bytes, stream), success);
            EXPECT_EQ(api.stream_synchronize(stream), success);
            touch(pooled);
            EXPECT_EQ(api.memory_free_async(pooled, stream), success);
            EXPECT_EQ(api.stream_synchronize(stream), success);
            touch(pooled);
        },
        "");
}

TEST_F(fake_cuda_memory, there_is_as_much_memory_as_the_test_says) {
    fake_cuda::set_total_memory(bytes + 1000);
    std::size_t free = 0;
    std::size_t total = 0;
    EXPECT_EQ(api.memory_info(&free, &total), success);
    EXPECT_EQ(total, bytes + 1000);
    EXPECT_EQ(free, total - fake_cuda::bytes_in_use(0));
    device_pointer more = 0;
    EXPECT_EQ(api.memory_alloc(&more, free + 1), error_out_of_memory);
    EXPECT_EQ(api.memory_alloc_async(&more, free + 1, stream), error_out_of_memory);
    EXPECT_EQ(api.memory_alloc(&more, free), success);
    EXPECT_EQ(api.memory_info(&free, &total), success);
    EXPECT_EQ(free, 0U);
    EXPECT_EQ(api.memory_free(more), success);
    EXPECT_EQ(api.memory_alloc(&more, 0), error_invalid_value);
}

TEST_F(fake_cuda_memory, the_pool_keeps_what_its_threshold_allows) {
    pool_handle pool = nullptr;
    ASSERT_EQ(api.device_default_pool(&pool, 0), success);
    const auto get = [&](pool_attribute which) {
        std::uint64_t value = 0;
        EXPECT_EQ(api.pool_get_attribute(pool, which, &value), success);
        return value;
    };
    std::uint64_t threshold = 2 * bytes;
    ASSERT_EQ(api.pool_set_attribute(pool, pool_attribute::release_threshold, &threshold), success);
    device_pointer first = 0;
    ASSERT_EQ(api.memory_alloc_async(&first, bytes, stream), success);
    EXPECT_EQ(get(pool_attribute::used_now), bytes);
    ASSERT_EQ(api.memory_free_async(first, stream), success);
    ASSERT_EQ(api.stream_synchronize(stream), success);
    EXPECT_EQ(get(pool_attribute::used_now), 0U);
    EXPECT_EQ(get(pool_attribute::reserved_now), bytes);
    device_pointer again = 0;
    ASSERT_EQ(api.memory_alloc_async(&again, bytes, stream), success);
    EXPECT_EQ(again, first) << "an address comes again";
    ASSERT_EQ(api.fill8_async(again, 1, bytes, stream), success);
    ASSERT_EQ(api.memory_free_async(again, stream), success);
    ASSERT_EQ(api.stream_synchronize(stream), success);
    EXPECT_EQ(api.pool_trim(pool, 0), success);
    EXPECT_EQ(get(pool_attribute::reserved_now), 0U);
    // Without a threshold the memory goes back at the next wait.
    threshold = 0;
    ASSERT_EQ(api.pool_set_attribute(pool, pool_attribute::release_threshold, &threshold), success);
    ASSERT_EQ(api.memory_alloc_async(&again, bytes, stream), success);
    ASSERT_EQ(api.memory_free_async(again, stream), success);
    ASSERT_EQ(api.stream_synchronize(stream), success);
    EXPECT_EQ(get(pool_attribute::reserved_now), 0U);
}

TEST_F(fake_cuda_memory, memory_is_freed_in_the_order_of_the_stream) {
    device_pointer pooled = 0;
    ASSERT_EQ(api.memory_alloc_async(&pooled, bytes, stream), success);
    const std::size_t live = fake_cuda::live(fake_thing::allocations);
    fake_gate gate(stream);
    ASSERT_EQ(api.fill8_async(pooled, 1, bytes, stream), success);
    ASSERT_EQ(api.memory_free_async(pooled, stream), success);
    EXPECT_EQ(fake_cuda::live(fake_thing::allocations), live);
    gate.open();
    ASSERT_EQ(api.stream_synchronize(stream), success);
    EXPECT_EQ(fake_cuda::live(fake_thing::allocations), live - 1);
}

TEST_F(fake_cuda_memory, pointers_tell_what_they_are) {
    const auto type = [this](device_pointer of) {
        unsigned value = 0;
        EXPECT_EQ(api.pointer_get_attribute(&value, pointer_attribute::memory_type, of), success);
        return value;
    };
    auto* const pinned = allocate_pinned<int>(4);
    device_pointer managed = 0;
    ASSERT_EQ(api.memory_alloc_managed(&managed, bytes, memory_attach_global), success);
    EXPECT_EQ(type(memory + bytes - 1), memory_type_device);
    EXPECT_EQ(type(managed), memory_type_device);
    EXPECT_EQ(type(device_address(pinned)), memory_type_host);
    unsigned is_managed = 0;
    EXPECT_EQ(api.pointer_get_attribute(&is_managed, pointer_attribute::is_managed, managed), success);
    EXPECT_EQ(is_managed, 1U);
    EXPECT_EQ(api.pointer_get_attribute(&is_managed, pointer_attribute::is_managed, memory), success);
    EXPECT_EQ(is_managed, 0U);
    int ordinal = -1;
    EXPECT_EQ(api.pointer_get_attribute(&ordinal, pointer_attribute::device_ordinal, memory), success);
    EXPECT_EQ(ordinal, 0);
    EXPECT_EQ(api.pointer_get_attribute(&ordinal, pointer_attribute::device_ordinal, device_address(&ordinal)),
              error_invalid_value);
    device_pointer mapped = 0;
    EXPECT_EQ(api.host_device_pointer(&mapped, pinned, 0), success);
    EXPECT_EQ(mapped, device_address(pinned));
    EXPECT_EQ(api.memory_free(managed), success);
    EXPECT_EQ(api.memory_free(device_address(pinned)), error_invalid_value);
    EXPECT_EQ(api.host_free(pinned), success);
}

}  // namespace
}  // namespace weir::test
