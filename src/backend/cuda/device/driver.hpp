#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "backend/backend.hpp"
#include "backend/cuda/api/device_libraries.hpp"
#include "backend/cuda/api/driver_api.hpp"
#include "backend/cuda/device/context_end.hpp"
#include "backend/cuda/device/device_context.hpp"
#include "backend/cuda/kernels/device_kernels.hpp"
#include "backend/cuda/memory/async_pool.hpp"
#include "backend/cuda/memory/device_chunks.hpp"
#include "backend/cuda/memory/device_copies.hpp"
#include "backend/cuda/memory/host_memory.hpp"
#include "frontier/point.hpp"

namespace weir::backend::cuda {

class host_bodies;

/// The device `cuda:<id>`. Never destroyed.
class cuda_driver final : public driver {
public:
    /// Throws device_error.
    cuda_driver(const driver_api& api, int id);
    ~cuda_driver() override = default;

    [[nodiscard]] std::string_view name() const noexcept override { return name_; }
    [[nodiscard]] std::unique_ptr<queue> make_queue(timeline& line, queue_events& events,
                                                    const queue_options& how) override;
    [[nodiscard]] std::unique_ptr<queue> adopt_queue(void* handle, timeline& line, queue_events& events) override;
    [[nodiscard]] std::uint64_t identify(void* handle) const override;
    [[nodiscard]] std::optional<int> device_of(const void* address) const noexcept override;
    [[nodiscard]] bool runs_host_code() const noexcept override { return bodies_.load() != nullptr; }
    [[nodiscard]] memory_chunk allocate(std::size_t bytes) noexcept override;
    void deallocate(memory_chunk memory, std::size_t bytes) noexcept override;
    void expect_sound() const override { context_.expect_sound(); }
    [[nodiscard]] std::size_t total_memory() const noexcept override { return total_memory_; }
    [[nodiscard]] std::chrono::steady_clock::time_point now() const noexcept override;
    [[nodiscard]] bool host_reaches_memory() const noexcept override { return bodies_.load() != nullptr; }
    [[nodiscard]] std::string about_shortage() const override;
    void trim() noexcept override { async_.trim(); }
    void fetch(std::byte* host, const std::byte* device, std::size_t bytes) override;
    void store(std::byte* device, const std::byte* host, std::size_t bytes) override;

    [[nodiscard]] bool has_own_end(point end) const noexcept override;
    [[nodiscard]] bool is_asked() const noexcept override { return true; }
    void look(point wanted) const noexcept override;
    void look_at_all() const noexcept override;
    [[nodiscard]] bool await(point wanted) const noexcept override;
    void hurry(point wanted) const noexcept override;
    [[nodiscard]] std::shared_ptr<void> native_event(point wanted) const override;
    void wait_for_event(void* event, void* queue) const override;

    [[nodiscard]] std::optional<point> record_end_of_all() noexcept override { return end_.record(); }
    [[nodiscard]] bool await_end_of_all() noexcept override { return end_.await(); }

    [[nodiscard]] device_context& in() noexcept { return context_; }

    /// For tests: from now on, for streams that are made and memory that is allocated later, host code replaces device
    /// work, and the host reaches the device's memory. Idempotent.
    void run_host_code();

private:
    std::string name_;
    mutable device_context context_;
    chunks chunks_;
    async_pool async_;
    device_kernels kernels_;
    device_copies copies_;
    device_libraries libraries_;
    device_shared_memory shared_memory_;
    std::size_t total_memory_;
    mutable context_end end_;
    std::atomic<host_bodies*> bodies_{nullptr};
};

/// The context of a CUDA device.
[[nodiscard]] device_context& context_of(driver& of) noexcept;

}  // namespace weir::backend::cuda
