// The alignment of memory from resources, and the adaptors from and to std::pmr (rule L6, docs/memory.md).
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <new>
#include <utility>
#include <vector>

#include "runtime/lifetime/reaper.hpp"
#include "support/beside.hpp"
#include "support/messages.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using memory::resource_ptr;
using test::message_of;
using testing::gate;

bool is_aligned(const void* address, std::size_t to) { return reinterpret_cast<std::uintptr_t>(address) % to == 0; }

/// Gives the same buffer to every caller.
class one_buffer final : public memory_resource {
public:
    explicit one_buffer(buffer given) : given_(std::move(given)) {}

private:
    buffer make(std::size_t /*bytes*/, std::size_t /*alignment*/, const stream_ref& /*on*/,
                const source_location& /*where*/) override {
        return std::exchange(given_, {});  // a buffer keeps the resource that allocated it: to keep it would be a cycle
    }

    buffer given_;
};

/// The C++ heap, with a record of allocations and deallocations.
class watched_heap final : public std::pmr::memory_resource {
public:
    std::atomic<std::size_t> asked_alignment{0};
    std::atomic<std::size_t> given_back_alignment{0};
    std::atomic<int> live{0};

private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        asked_alignment = alignment;
        ++live;
        return ::operator new (bytes, std::align_val_t{alignment});
    }
    void do_deallocate(void* memory, std::size_t /*bytes*/, std::size_t alignment) override {
        given_back_alignment = alignment;
        --live;
        ::operator delete (memory, std::align_val_t{alignment});
    }
    [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
        return this == &other;
    }
};

TEST(L6Alignment, PoolsGiveTheirOwnAndRefuseMore) {
    const stream s;
    const resource_ptr counted = memory::counting();
    EXPECT_TRUE(is_aligned(counted->allocate(100, s).data(), memory_resource::default_alignment));
    EXPECT_TRUE(is_aligned(counted->allocate(100, s, 8).data(), 8));
    EXPECT_NE(message_of<argument_error>([&] { static_cast<void>(counted->allocate(100, s, 4096)); }).find("4096"),
              std::string::npos);
    EXPECT_THROW(static_cast<void>(memory::driver_pool()->allocate(100, s, 512)), argument_error);
    EXPECT_THROW(static_cast<void>(memory::pinned()->allocate(100, s, 512)), argument_error);
}

TEST(L6Alignment, OneThatIsNoPowerOfTwoIsRefused) {
    const stream s;
    EXPECT_THROW(static_cast<void>(memory::counting()->allocate(100, s, 0)), argument_error);
    EXPECT_THROW(static_cast<void>(memory::counting()->allocate(100, s, 24)), argument_error);
}

TEST(L6Alignment, AnAdaptorPassesItOn) {
    const stream s;
    watched_heap heap;
    const resource_ptr stack = memory::limiting(1 << 20, memory::counting(memory::from_pmr(heap)));
    EXPECT_TRUE(is_aligned(stack->allocate(100, s, 4096).data(), 4096));
    EXPECT_EQ(heap.asked_alignment, 4096U);
    EXPECT_EQ(heap.given_back_alignment, 4096U);
}

TEST(L6Alignment, AResourceThatIgnoresItIsRefused) {
    const stream s;
    alignas(512) static std::byte memory[1024];
    const auto misaligned = [&] { return std::make_shared<one_buffer>(buffer::wrap(memory + 8, 512, cpu(), [] {})); };
    EXPECT_THROW(static_cast<void>(misaligned()->allocate(100, s)), state_error);
    EXPECT_EQ(misaligned()->allocate(100, s, 8).bytes(), 512U);
}

TEST(L6Pmr, AStandardResourceGetsItsMemoryBackOnceTheLastOperationIsOver) {
    const stream s;
    watched_heap heap;
    gate closed;
    {
        const memory::use scope(memory::from_pmr(heap));
        array x = zeros(1000, dtype::float64, s);
        closed.hold(s);
        fill(s, x, 1.0);
    }
    EXPECT_EQ(heap.live, 1) << "the array is gone, the operation is not";
    EXPECT_EQ(heap.asked_alignment, memory_resource::default_alignment);
    closed.open();
    s.synchronize();
    runtime::reaper::wait_until_empty();
    EXPECT_EQ(heap.live, 0);
}

TEST(L6Pmr, AStandardResourceIsForTheHostAlone) {
    watched_heap heap;
    const stream s(sim(0));
    const resource_ptr resource = memory::from_pmr(heap);
    EXPECT_THROW(static_cast<void>(resource->allocate(64, s)), argument_error);
    EXPECT_EQ(heap.live, 0);
}

TEST(L6Pmr, ContainersOfTheStandardLibraryUseWeirsMemory) {
    const auto counted = memory::counting();
    {
        memory::pmr_resource resource(counted);
        std::pmr::vector<double> values(1000, 3.0, &resource);
        EXPECT_GE(counted->counts().live.bytes, 8000U);
        values.resize(2000, 4.0);
        EXPECT_EQ(values[999] + values[1999], 7.0);
        EXPECT_EQ(counted->counts().live.count, 1U);
        const auto deleter = [&](void* memory) { resource.deallocate(memory, 100, 128); };
        const std::unique_ptr<void, decltype(deleter)> aligned(resource.allocate(100, 128), deleter);
        EXPECT_TRUE(is_aligned(aligned.get(), 128));
        EXPECT_NE(resource.allocate(0, 1), nullptr) << "given back with the resource";
    }
    EXPECT_EQ(counted->counts().live.count, 0U);
    EXPECT_EQ(counted->counts().total.count, 4U);
}

TEST(L6Pmr, AnAllocationWaitsForTheFormerOwnersOperations) {
    const stream s;
    const buffer shared(800, s);
    memory::pmr_resource resource(std::make_shared<one_buffer>(shared));
    gate closed;
    closed.hold(s);
    const completion last = fill(s, array(shared, dtype::float64, {100}), 1.0);
    void* given = nullptr;
    test::beside allocation([&] { given = resource.allocate(800, 8); });
    EXPECT_TRUE(allocation.waits());
    closed.open();
    allocation.join();
    EXPECT_TRUE(last.done());
    EXPECT_EQ(given, shared.data());
    resource.deallocate(given, 800, 8);
}

}  // namespace
}  // namespace weir
