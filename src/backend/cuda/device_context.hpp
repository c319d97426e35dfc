#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>

#include "backend/cuda/context.hpp"
#include "backend/cuda/event_pool.hpp"
#include "backend/cuda/staging.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::backend::cuda {

/// A moment that both the host's clock and the device's know.
struct clock_base {
    event_ref on_device;
    std::chrono::steady_clock::time_point on_host;
};

/// What all streams of one device share.
class alignas(64) device_context : public context {
public:
    /// Throws device_error.
    device_context(const driver_api& api, int number);
    /// Of one that could not be made in full: others live for ever.
    ~device_context();

    event_pool events;        ///< without times
    event_pool timed_events;  ///< with times
    staging pieces;

    static constexpr std::chrono::steady_clock::duration base_lasts = std::chrono::seconds(2);
    /// A base for times of events that are recorded from now on: one that is not older than it `lasts`, since the driver gives
    /// differences as floats, or else the last one. In the context. Waits for the device for some microseconds, at most for some milliseconds but the first time.
    /// Throws device_error, std::bad_alloc.
    [[nodiscard]] std::shared_ptr<const clock_base> base(std::chrono::steady_clock::duration lasts = base_lasts);
    /// The time of an event that is over; none if the driver does not tell, as in a broken context.
    [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> time_of(const clock_base& base,
                                                                               event_handle of) const noexcept;

    /// A stream for what Weir itself does on the device.
    [[nodiscard]] stream_handle own_stream() const noexcept { return own_stream_; }

private:
    [[nodiscard]] bool await(event_handle event, bool has_another);

    stream_handle own_stream_ = nullptr;
    detail::mutex base_mutex_;  ///< guards base_; a leaf in the lock order
    std::shared_ptr<const clock_base> base_;
};

}  // namespace weir::backend::cuda
