#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "backend/cuda/device_context.hpp"
#include "backend/cuda/driver_api.hpp"
#include "backend/timeline.hpp"

namespace weir::backend::cuda {

/// The driver's own allocator in stream order (cuMemAllocAsync). It is one for the whole process: other libraries may use it
/// as well. Any thread.
class async_pool {
public:
    explicit async_pool(device_context& of) noexcept;
    async_pool(const async_pool&) = delete;
    async_pool& operator=(const async_pool&) = delete;
    ~async_pool() = default;

    /// Whether the device has one.
    [[nodiscard]] bool is_there() const noexcept { return is_there_; }

    /// Memory for what is put into `stream` from now on, and for what is ordered after that; null if there is none. Throws
    /// device_error, state_error (the stream is being captured).
    [[nodiscard]] std::byte* allocate(std::size_t bytes, stream_handle stream);
    /// Gives memory back that nothing uses any more. Does not wait.
    void give_back(std::byte* memory) noexcept;
    /// Gives memory back in the stream whose operation at `last` is the last to use it; false, and nothing done, unless that
    /// is in the stream already, and nobody but Weir has the stream.
    [[nodiscard]] bool give_back_behind(point last, std::byte* memory) noexcept;
    /// How much of the device's memory the driver has here, for messages: a sentence, or nothing if this was never used.
    [[nodiscard]] std::string about_use() const;
    /// Gives back to the device what the driver keeps of memory that was given back, if this was ever used. Does not wait.
    void trim() noexcept;

private:
    /// What the driver answers; 0 if it does not.
    [[nodiscard]] std::uint64_t ask(pool_handle pool, pool_attribute what) const noexcept;

    device_context* of_;
    bool is_there_;
    std::atomic<bool> used_{false};
};

}  // namespace weir::backend::cuda
