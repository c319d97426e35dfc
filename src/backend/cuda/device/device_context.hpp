#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>

#include "backend/cuda/device/context.hpp"
#include "backend/cuda/memory/staging.hpp"
#include "backend/cuda/streams/event_pool.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::backend::cuda {

/// A moment known in both the host's and the device's time.
struct clock_base {
    event_ref on_device;
    std::chrono::steady_clock::time_point on_host;
};

/// State that all streams of one device share.
class alignas(64) device_context : public context {
public:
    /// Throws device_error.
    device_context(const driver_api& api, int number);
    /// Only for an object whose construction failed: complete ones are never destroyed.
    ~device_context();

    event_pool events;        ///< events without times
    event_pool timed_events;  ///< events with times
    staging chunks;

    static constexpr std::chrono::steady_clock::duration base_lasts = std::chrono::seconds(2);
    /// A base for times of events that are recorded from now on: one not older than `lasts`, since the driver returns
    /// differences as floats, or else the last one. In the context. Waits for the device for some microseconds; for at most some
    /// milliseconds, except the first time.
    /// Throws device_error, std::bad_alloc.
    [[nodiscard]] std::shared_ptr<const clock_base> base(std::chrono::steady_clock::duration lasts = base_lasts);
    /// The time of a complete event; none if the driver does not report it, as in a broken context.
    [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> time_of(const clock_base& base,
                                                                               event_handle of) const noexcept;

    /// A stream for Weir's own work on the device.
    [[nodiscard]] stream_handle own_stream() const noexcept { return own_stream_; }

private:
    [[nodiscard]] bool await(event_handle event, bool has_another);

    stream_handle own_stream_ = nullptr;
    detail::mutex base_mutex_;  ///< guards base_; a leaf in the lock order
    std::shared_ptr<const clock_base> base_;
};

}  // namespace weir::backend::cuda
