#include "runtime/stream_state.hpp"

#include <utility>

#include "runtime/device_state.hpp"
#include "runtime/failures.hpp"
#include "runtime/fork.hpp"
#include "weir/error.hpp"

namespace weir::runtime {

namespace {

backend::timeline_table& timelines() { return backend::timeline_table::instance(); }

std::uint64_t next_stream_id() noexcept {
    static std::atomic<std::uint64_t> next{1};
    return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

detail::owner<stream_state> stream_state::make(device_state& device, int priority, std::string name) {
    fork_guard::expect_not_forked();
    fork_guard::arm();
    const frontiers::timeline_id timeline = timelines().acquire();
    try {
        detail::owner<stream_state> made(new stream_state(device, timeline, priority, std::move(name)));
        device.add(*made);
        observers::tell([&](observer& one) { one.stream_made(made->info()); });
        return made;
    } catch (...) {
        timelines().release(timeline);
        throw;
    }
}

stream_state::stream_state(device_state& device, frontiers::timeline_id timeline, int priority, std::string name)
    : sequence(timeline, timelines().completed(timeline)),
      device_(&device),
      name_(std::move(name)),
      priority_(priority) {
    info_.id = next_stream_id();
    info_.timeline = timeline;
    info_.before = sequence.tail();
    if (name_.empty()) {
        name_ = "stream " + std::to_string(info_.id);
    }
    info_.name = name_;
    info_.device = device.driver().name();
    queue = device.driver().make_queue(timelines().at(timeline), *this);
}

void stream_state::last_owner_gone() noexcept {
    // Nothing is pending: the queue was an owner while it had work. From here on the timeline may get another stream.
    const frontiers::timeline_id timeline = info_.timeline;
    device_->remove(*this);
    failures::forget_unreported(timeline);
    delete this;
    timelines().release(timeline);
}

void stream_state::expect_open() const {
    if (closed.load(std::memory_order_acquire)) {
        throw state_error("the stream \"" + name_ + "\" is closed: make a new one with weir::stream(device)");
    }
}

order::mark stream_state::tail() {
    fork_guard::expect_not_forked();
    const std::lock_guard lock(mutex);
    return sequence.record();
}

void stream_state::failed(backend::epoch at, const site& from, std::exception_ptr why) noexcept {
    failures::note({info_.timeline, at}, from, std::move(why));
}

void stream_state::executed(backend::epoch at, std::chrono::steady_clock::time_point start,
                            std::chrono::steady_clock::time_point end) noexcept {
    observers::tell([&](observer& one) { one.executed({info_.timeline, at}, start, end); });
}

}  // namespace weir::runtime
