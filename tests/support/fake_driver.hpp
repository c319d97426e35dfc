// A driver without queues that counts what it gives, and fails on purpose: for tests of the pool.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <new>
#include <set>

#include "backend/backend.hpp"

namespace weir::test {

class fake_driver : public backend::driver {
public:
    fake_driver() = default;
    ~fake_driver() override { EXPECT_EQ(held, 0U) << "bytes were not given back"; }

    [[nodiscard]] std::string_view name() const noexcept override { return "fake"; }
    [[nodiscard]] std::unique_ptr<backend::queue> make_queue(backend::timeline& /*line*/,
                                                             backend::queue_events& /*events*/,
                                                             const backend::queue_options& /*how*/) override {
        return nullptr;
    }
    [[nodiscard]] backend::memory_chunk allocate(std::size_t bytes) noexcept override {
        if (++calls == fail_at || held + bytes > total) {
            return {};
        }
        held += bytes;
        chunks.insert(bytes);
        return {static_cast<std::byte*>(::operator new (bytes, std::align_val_t{256}, std::nothrow)), 0};
    }
    void deallocate(backend::memory_chunk memory, std::size_t bytes) noexcept override {
        held -= bytes;
        chunks.erase(chunks.find(bytes));
        ::operator delete (memory.address, std::align_val_t{256});
    }
    [[nodiscard]] std::size_t total_memory() const noexcept override { return told; }
    [[nodiscard]] bool host_reaches_memory() const noexcept override { return true; }
    void fetch(std::byte* host, const std::byte* device, std::size_t bytes) override {
        std::memcpy(host, device, bytes);
    }
    void store(std::byte* device, const std::byte* host, std::size_t bytes) override {
        std::memcpy(device, host, bytes);
    }

    std::size_t total = std::size_t{1} << 40;  ///< the memory that it really has
    std::size_t told = std::size_t{1} << 40;   ///< the memory that it reports
    int calls = 0;
    int fail_at = 0;  ///< the call that returns no memory, from 1
    std::size_t held = 0;
    std::multiset<std::size_t> chunks;  ///< the sizes of what it has given and not got back
};

}  // namespace weir::test
