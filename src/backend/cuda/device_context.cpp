#include "backend/cuda/device_context.hpp"

#include <chrono>
#include <utility>

namespace weir::backend::cuda {

namespace {

constexpr auto base_lasts = std::chrono::seconds(2);
constexpr int most_tries = 4;
constexpr auto close_enough = std::chrono::microseconds(20);

}  // namespace

device_context::device_context(const driver_api& api, int number)
    : context(api, number), events(*this, event_disable_timing), timed_events(*this, 0), pieces(*this) {
    const in_relaxed_context here(*this);
    expect(api.stream_create(&own_stream_, stream_non_blocking, 0), "cuStreamCreateWithPriority");
}

std::shared_ptr<const clock_base> device_context::base() {
    const auto now = std::chrono::steady_clock::now();
    {
        const std::lock_guard lock(base_mutex_);
        if (base_ && now - base_->on_host < base_lasts) {
            return base_;
        }
    }
    auto fresh = std::make_shared<clock_base>();
    // The event came to pass between two times of the host's: of several tries, the one where these are closest.
    auto closest = std::chrono::steady_clock::duration::max();
    for (int tries = 0; tries < most_tries && closest > close_enough; ++tries) {
        event_ref event = timed_events.take();
        const auto before = std::chrono::steady_clock::now();
        expect(api().event_record(event.handle(), own_stream_), "cuEventRecord");
        expect(api().event_synchronize(event.handle()), "cuEventSynchronize");
        const auto taken = std::chrono::steady_clock::now() - before;
        if (taken < closest) {
            closest = taken;
            fresh->on_device = std::move(event);
            fresh->on_host = before + taken / 2;
        }
    }
    const std::lock_guard lock(base_mutex_);
    base_ = fresh;
    return fresh;
}

std::optional<std::chrono::steady_clock::time_point> device_context::time_of(const clock_base& base,
                                                                             event_handle of) const noexcept {
    float milliseconds = 0;
    const in_relaxed_context here(*this);  // whoever finds that work is over may be a thread without a context
    if (api().event_elapsed(&milliseconds, base.on_device.handle(), of) != success) {
        return std::nullopt;
    }
    return base.on_host + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                              std::chrono::duration<double, std::milli>(static_cast<double>(milliseconds)));
}

}  // namespace weir::backend::cuda
