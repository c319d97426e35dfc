#pragma once

#include <cstddef>
#include <functional>

#include "backend/capability/staging.hpp"
#include "weir/detail/task.hpp"

namespace weir::backend::capability {

/// A device whose queues copy memory themselves. On other devices the body of an operation copies, as host code.
/// Any thread; lives as long as the driver.
class copies {
public:
    copies() = default;
    copies(const copies&) = delete;
    copies& operator=(const copies&) = delete;

    /// Puts a copy of `bytes` bytes into a queue. Both sides are the device's own memory, or memory of the host that it reaches;
    /// they do not overlap. Does not block. Throws device_error.
    virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes, detail::queue_handle into) const = 0;
    /// The same from memory of the host that the device reaches.
    virtual void copy_from_host(std::byte* to, const std::byte* from, std::size_t bytes,
                                detail::queue_handle into) const = 0;
    /// The same between the memory of two devices of this device's kind. This device is one of the two, and has the queue.
    virtual void copy_between(std::byte* to, const copies& of_to, const std::byte* from, const copies& of_from,
                              std::size_t bytes, detail::queue_handle into) const = 0;

    [[nodiscard]] virtual capability::staging& staging() const noexcept = 0;
    /// Has `work` put work into a queue of the driver's own, and blocks until that is complete, also where `work` throws. Throws what
    /// `work` throws, device_error.
    virtual void run_now(const std::function<void(detail::queue_handle)>& work) const = 0;

protected:
    ~copies() = default;
};

}  // namespace weir::backend::capability
