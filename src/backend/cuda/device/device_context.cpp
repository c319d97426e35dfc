#include "backend/cuda/device/device_context.hpp"

#include <chrono>
#include <utility>

#include "backend/spin.hpp"

namespace weir::backend::cuda {

namespace {

constexpr int most_tries = 4;
constexpr auto close_enough = std::chrono::microseconds(20);
/// Weir's own stream may share a hardware queue with a stream that waits for something: then an older base must do.
constexpr auto patience = std::chrono::milliseconds(10);

}  // namespace

device_context::device_context(const driver_api& api, int number)
    : context(api, number), events(*this, event_disable_timing), timed_events(*this, 0), chunks(*this) {
    const in_relaxed_context here(*this);
    expect(here.entered(), "cuCtxSetCurrent");
    expect(api.stream_create(&own_stream_, stream_non_blocking, 0), "cuStreamCreateWithPriority");
}

device_context::~device_context() {
    const in_relaxed_context here(*this);
    api().stream_destroy(own_stream_);
}

/// Waits for an event in Weir's own stream; only for a short time if there is another base. Whether the event is complete.
bool device_context::await(event_handle event, bool has_another) {
    if (!has_another) {
        expect(api().event_synchronize(event), "cuEventSynchronize");
        return true;
    }
    const auto end = std::chrono::steady_clock::now() + patience;
    result found = success;
    while ((found = api().event_query(event)) == error_not_ready && std::chrono::steady_clock::now() < end) {
        relax();
    }
    if (found == error_not_ready) {
        return false;
    }
    expect(found, "cuEventQuery");
    return true;
}

std::shared_ptr<const clock_base> device_context::base(std::chrono::steady_clock::duration lasts) {
    std::shared_ptr<const clock_base> former;
    {
        const std::lock_guard lock(base_mutex_);
        former = base_;
    }
    if (former && std::chrono::steady_clock::now() - former->on_host < lasts) {
        return former;
    }
    const in_relaxed_context here(*this);
    auto fresh = std::make_shared<clock_base>();
    // The event happened between two times of the host clock. Use the try in which these are closest.
    auto closest = std::chrono::steady_clock::duration::max();
    for (int tries = 0; tries < most_tries && closest > close_enough; ++tries) {
        event_ref event = timed_events.take();
        const auto before = std::chrono::steady_clock::now();
        expect(api().event_record(event.handle(), own_stream_), "cuEventRecord");
        if (!await(event.handle(), former != nullptr)) {
            return former;
        }
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
    const in_relaxed_context here(*this);  // the thread that finds work complete may have no context
    if (api().event_elapsed(&milliseconds, base.on_device.handle(), of) != success) {
        return std::nullopt;
    }
    return base.on_host + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                              std::chrono::duration<double, std::milli>(static_cast<double>(milliseconds)));
}

}  // namespace weir::backend::cuda
