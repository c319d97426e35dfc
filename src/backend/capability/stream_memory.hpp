#pragma once

#include <cstddef>

#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "weir/detail/task.hpp"

namespace weir::backend::capability {

/// A device whose driver allocates in the order of its queues. Any thread; lives as long as the driver.
class stream_memory {
public:
    stream_memory() = default;
    stream_memory(const stream_memory&) = delete;
    stream_memory& operator=(const stream_memory&) = delete;

    /// Memory for what is put into the queue from now on, and for what is ordered after that; null if there is none left. Throws
    /// device_error, state_error (the queue is being captured).
    [[nodiscard]] virtual std::byte* allocate(std::size_t bytes, detail::queue_handle in) = 0;
    /// Gives memory back that is no longer in use. Does not wait.
    virtual void give_back(std::byte* memory) noexcept = 0;
    /// Gives memory back in the queue whose operation at `last` is the last to use it. Returns false, and does nothing, unless that
    /// operation is in the driver's queue already, and only Weir uses that queue.
    [[nodiscard]] virtual bool give_back_behind(point last, std::byte* memory) noexcept = 0;

protected:
    ~stream_memory() = default;
};

}  // namespace weir::backend::capability
