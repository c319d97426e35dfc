#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "backend/backend.hpp"
#include "backend/capability/shared_memory.hpp"
#include "backend/cuda/api/driver_api.hpp"
#include "backend/cuda/device/device_context.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::backend::cuda {

/// Allocates memory that the host and CUDA devices both reach. The driver waits for the device before it takes such memory back,
/// so a thread of Weir's own does that: giving back waits for nothing, and takes effect when the device has finished its work.
class host_memory : public memory_source {
public:
    [[nodiscard]] std::string_view name() const noexcept override { return name_; }
    void deallocate(memory_chunk memory, std::size_t bytes) noexcept override;
    void await_given_back() noexcept override;
    void expect_sound() const override { in_->expect_sound(); }
    [[nodiscard]] bool host_reaches_memory() const noexcept override { return true; }

protected:
    using free_function = result (*)(const driver_api&, std::byte*) noexcept;
    /// Throws std::system_error (no thread can be started).
    host_memory(device_context& in, std::string name, free_function free);
    ~host_memory() override = default;
    [[nodiscard]] device_context& in() const noexcept { return *in_; }

private:
    class returned;
    void free_now(std::byte* memory) const noexcept;

    device_context* in_;
    std::string name_;
    free_function free_;
    detail::mutex mutex_;  ///< guards what follows; a leaf in the lock order
    detail::condition_variable is_back_;
    std::size_t on_their_way_ = 0;  ///< chunks that a thread is to give back
};

/// Host memory that devices copy from and to directly (cuMemHostAlloc).
class pinned_memory final : public host_memory {
public:
    /// `host` reports how much there is.
    pinned_memory(device_context& in, const memory_source& host);
    ~pinned_memory() override = default;
    [[nodiscard]] memory_chunk allocate(std::size_t bytes) noexcept override;
    [[nodiscard]] std::size_t total_memory() const noexcept override { return host_->total_memory(); }
    [[nodiscard]] bool is_pinned() const noexcept override { return true; }

private:
    const memory_source* host_;
};

/// Memory of a device that the host reaches, too: pages migrate to where they are used (cuMemAllocManaged). There may be more of it
/// than the device has.
class managed_memory final : public host_memory {
public:
    managed_memory(device_context& in, std::string_view device);
    ~managed_memory() override = default;
    [[nodiscard]] memory_chunk allocate(std::size_t bytes) noexcept override;
    [[nodiscard]] std::size_t total_memory() const noexcept override { return 0; }
    [[nodiscard]] bool needs_idle_device() const noexcept override;
    void await_idle_device() override;
};

/// Both kinds, for one device.
class device_shared_memory final : public capability::shared_memory {
public:
    /// `of` names the device.
    device_shared_memory(device_context& in, const driver& of) noexcept : in_(&in), of_(&of) {}
    ~device_shared_memory() = default;

    [[nodiscard]] std::unique_ptr<memory_source> make_managed(memory_source& host) override;
    [[nodiscard]] std::unique_ptr<memory_source> make_pinned(memory_source& host) override;

private:
    device_context* in_;
    const driver* of_;
};

}  // namespace weir::backend::cuda
