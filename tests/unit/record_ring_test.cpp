#include "backend/record_ring.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>

namespace weir::backend {
namespace {

void put(record_ring& ring, std::uint64_t value, std::size_t size) {
    ring.reserve(record_ring::rounded(size));
    void* const place = ring.push(size);
    std::memset(place, static_cast<int>(value & 0xff), size);
    std::memcpy(place, &value, sizeof(value));
    ring.commit();
}

// Sizes that differ, some larger than the first segment.
std::size_t size_of(std::uint64_t i) { return sizeof(std::uint64_t) + (i * 37) % 3000; }

TEST(RecordRing, IsEmptyAtFirst) {
    record_ring ring;
    EXPECT_EQ(ring.front(), nullptr);
    ring.reserve(64);
    EXPECT_EQ(ring.front(), nullptr);
}

TEST(RecordRing, ShowsNothingBeforeItIsCommitted) {
    record_ring ring;
    ring.reserve(64);
    (void)ring.push(32);
    EXPECT_EQ(ring.front(), nullptr);
    ring.commit();
    EXPECT_NE(ring.front(), nullptr);
}

TEST(RecordRing, SeesWhatItLookedAtAndNothingThatCameSince) {
    record_ring ring;
    put(ring, 1, 16);
    EXPECT_FALSE(ring.has_seen()) << "nobody has looked";
    put(ring, 2, 16);
    EXPECT_NE(ring.front(), nullptr);
    EXPECT_TRUE(ring.has_seen());
    put(ring, 3, 16);
    ring.pop(16);
    EXPECT_TRUE(ring.has_seen()) << "the second was there when it looked";
    ring.pop(16);
    EXPECT_FALSE(ring.has_seen()) << "the third came later";
    EXPECT_NE(ring.front(), nullptr);
    EXPECT_TRUE(ring.has_seen());
}

TEST(RecordRing, GivesRecordsOfAllSizesBackInOrderAndWhole) {
    record_ring ring;
    std::uint64_t taken = 0;
    for (std::uint64_t i = 0; i < 5000; ++i) {
        put(ring, i, size_of(i));
        if (i % 3 != 0) {
            std::uint64_t value = 0;
            auto* const front = static_cast<std::byte*>(ring.front());
            ASSERT_NE(front, nullptr);
            ASSERT_EQ(reinterpret_cast<std::uintptr_t>(front) % record_ring::alignment, 0U);
            std::memcpy(&value, front, sizeof(value));
            ASSERT_EQ(value, taken);
            ASSERT_EQ(static_cast<int>(front[size_of(taken) - 1]) & 0xff,
                      size_of(taken) > sizeof(value) ? static_cast<int>(taken & 0xff) : 0);
            ring.pop(size_of(taken));
            ++taken;
        }
    }
}

TEST(RecordRing, OneProducerAndOneConsumerNeedNoLock) {
    constexpr std::uint64_t count = 200000;
    record_ring ring;
    std::thread producer([&] {
        for (std::uint64_t i = 0; i < count; ++i) {
            put(ring, i, 8 + i % 100);
        }
    });
    for (std::uint64_t i = 0; i < count; ++i) {
        void* front = ring.front();
        while (front == nullptr) {
            std::this_thread::yield();
            front = ring.front();
        }
        std::uint64_t value = 0;
        std::memcpy(&value, front, sizeof(value));
        ASSERT_EQ(value, i);
        ring.pop(8 + i % 100);
    }
    producer.join();
}

}  // namespace
}  // namespace weir::backend
