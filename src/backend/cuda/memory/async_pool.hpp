#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "backend/capability/stream_memory.hpp"
#include "backend/cuda/api/driver_api.hpp"
#include "backend/cuda/device/device_context.hpp"
#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "weir/detail/task.hpp"

namespace weir::backend::cuda {

/// The driver's own allocator in stream order (cuMemAllocAsync). There is one for the whole process: other libraries may use it
/// as well. Any thread.
class async_pool final : public capability::stream_memory {
public:
    explicit async_pool(device_context& of) noexcept;
    ~async_pool() = default;

    /// Whether the device has such an allocator.
    [[nodiscard]] bool is_there() const noexcept { return is_there_; }

    [[nodiscard]] std::byte* allocate(std::size_t bytes, detail::queue_handle in) override;
    void give_back(std::byte* memory) noexcept override;
    [[nodiscard]] bool give_back_behind(point last, std::byte* memory) noexcept override;
    /// How much of the device's memory the driver holds here, for messages: a sentence, or nothing if this was never used.
    [[nodiscard]] std::string about_use() const;
    /// Returns cached memory of the driver to the device, if this was ever used. Does not wait.
    void trim() noexcept;

private:
    /// The driver's answer; 0 if it gives none.
    [[nodiscard]] std::uint64_t ask(pool_handle pool, pool_attribute what) const noexcept;

    device_context* of_;
    bool is_there_;
    std::atomic<bool> used_{false};
};

}  // namespace weir::backend::cuda
