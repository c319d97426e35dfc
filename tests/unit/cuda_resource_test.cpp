// Weir's memory as a resource of CCCL's, whose headers tests/support/cccl stands for (rules L1, L6, docs/memory.md).
#include "weir/cuda_memory_resource.hpp"

#include <gtest/gtest.h>

#include <cuda/memory_resource>
#include <cuda/stream_ref>
#include <memory>

#include "cuda_support.hpp"
#include "support/beside.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using memory::cuda_resource;
using test::device_flag;

static_assert(::cuda::mr::resource_with<cuda_resource, ::cuda::mr::device_accessible>);
static_assert(std::copyable<cuda_resource>);

::cuda::stream_ref as_theirs(const stream& s) { return static_cast<CUstream_st*>(s.handle()); }

/// Gives the same buffer to every caller: memory that one stream gives back goes to the next one.
class same_memory final : public memory_resource {
public:
    explicit same_memory(buffer kept) : kept_(std::move(kept)) {}

private:
    buffer make(std::size_t /*bytes*/, std::size_t /*alignment*/, const stream_ref& /*on*/,
                const source_location& /*where*/) override {
        return kept_;
    }

    const buffer kept_;
};

class L6CudaResource : public ::testing::Test {
protected:
    void SetUp() override { a_.synchronize(); }

    const stream a_{cuda()};
    const stream b_{cuda()};
    cuda_resource resource_{cuda(), std::make_shared<same_memory>(buffer(4096, a_))};
};

TEST_F(L6CudaResource, WhatTheOtherStreamGetsComesAfterWhatTheFirstGaveBack) {
    void* const first = resource_.allocate(as_theirs(a_), 4096);
    device_flag flag;
    flag.hold(static_cast<test::gpu::stream_handle>(a_.handle()));  // work of others that Weir does not see
    resource_.deallocate(as_theirs(a_), first, 4096);
    void* const second = resource_.allocate(as_theirs(b_), 4096);
    EXPECT_EQ(second, first);
    EXPECT_FALSE(b_.done()) << "b must not touch the memory before a is through with it";
    flag.raise();
    b_.synchronize();
    EXPECT_TRUE(a_.done());
    resource_.deallocate(as_theirs(b_), second, 4096);
}

TEST_F(L6CudaResource, TheSameStreamWaitsForNothing) {
    void* const first = resource_.allocate(as_theirs(a_), 4096, 64);
    b_.synchronize();
    resource_.deallocate(as_theirs(a_), first, 4096, 64);
    device_flag flag;
    flag.hold(static_cast<test::gpu::stream_handle>(b_.handle()));
    void* const second = resource_.allocate(as_theirs(a_), 4096);
    a_.synchronize();
    EXPECT_EQ(second, first);
    flag.raise();
    resource_.deallocate(as_theirs(a_), second, 4096);
}

TEST_F(L6CudaResource, SynchronousMemoryIsFreeToUseWhenTheCallReturns) {
    void* const first = resource_.allocate(as_theirs(a_), 4096);
    device_flag flag;
    flag.hold(static_cast<test::gpu::stream_handle>(a_.handle()));
    resource_.deallocate(as_theirs(a_), first, 4096);
    void* second = nullptr;
    test::beside allocation([&] { second = resource_.allocate_sync(4096); });
    EXPECT_TRUE(allocation.waits());
    flag.raise();
    allocation.join();
    EXPECT_EQ(second, first);
    resource_.deallocate_sync(second, 4096);
}

TEST_F(L6CudaResource, CopiesAreTheSameResourceAndOthersAreNot) {
    const cuda_resource copy = resource_;
    EXPECT_EQ(copy, resource_);
    EXPECT_NE(cuda_resource(cuda()), resource_);
}

TEST_F(L6CudaResource, MemoryOfThePoolIsTheDevices) {
    const auto counted = memory::counting();
    cuda_resource of_pool(cuda(), counted);
    void* const memory = of_pool.allocate(as_theirs(a_), 1000);
    EXPECT_EQ(counted->counts().live.bytes, 1000U);
    of_pool.deallocate(as_theirs(a_), memory, 1000);
    EXPECT_EQ(counted->counts().live.bytes, 0U);
    EXPECT_THROW(static_cast<void>(of_pool.allocate(as_theirs(a_), 1000, 4096)), argument_error);
}

}  // namespace
}  // namespace weir
