#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

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
    mutable std::atomic<result> error_{
        success};  ///< what is noted: no one changes the context. Asked by each operation

public:
    /// Throws device_error.
    device_context(const driver_api& api, int number);
    ~device_context() = default;

    event_pool events;        ///< without times
    event_pool timed_events;  ///< with times
    staging pieces;

    /// A base for times of events that are recorded from now on: a recent one, since the driver gives differences as floats.
    /// In the context. May wait for the device for some microseconds. Throws device_error, std::bad_alloc.
    [[nodiscard]] std::shared_ptr<const clock_base> base();
    /// The time of an event that is over; none if the driver does not tell, as in a broken context.
    [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> time_of(const clock_base& base,
                                                                               event_handle of) const noexcept;

    /// A stream for what Weir itself does on the device.
    [[nodiscard]] stream_handle own_stream() const noexcept { return own_stream_; }

    /// Notes that the driver answered `what` where only a broken context can be the reason. Whether it is broken: nothing
    /// runs in it any more, and every call fails.
    bool note_error(result what) const noexcept;
    /// The same as the context's, and notes the error.
    void expect(result what, const char* call) const {
        if (what != success) [[unlikely]] {
            refuse(what, call);
        }
    }
    [[noreturn, gnu::cold, gnu::noinline]] void refuse(result what, const char* call) const {
        note_error(what);
        cuda::refuse(api(), what, call);
    }
    [[nodiscard]] bool is_broken() const noexcept { return error_.load(std::memory_order_relaxed) != success; }
    /// Why, for messages.
    [[nodiscard]] std::string why_broken() const;

private:
    stream_handle own_stream_ = nullptr;
    detail::mutex base_mutex_;  ///< guards base_; a leaf in the lock order
    std::shared_ptr<const clock_base> base_;
};

}  // namespace weir::backend::cuda
