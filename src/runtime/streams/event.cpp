#include "weir/event.hpp"

#include <atomic>
#include <chrono>
#include <string>
#include <utility>

#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "observe/observers.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/failures/failures.hpp"
#include "runtime/host/fork.hpp"
#include "runtime/host/host.hpp"
#include "runtime/numbers.hpp"
#include "runtime/streams/event_state.hpp"
#include "runtime/streams/stream_registry.hpp"
#include "runtime/streams/stream_state.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"

namespace weir {

namespace {

/// Enqueues a task that notes the time. It takes an epoch of its own, so that the time is noted once the epoch is complete. Under
/// the stream's lock. Throws std::bad_alloc.
order::mark note_time(runtime::stream_state& stream, const std::shared_ptr<runtime::time_noted>& time,
                      const source_location& where) {
    const runtime::site from{"timed event", where};
    const auto note = [time, driver = &stream.device().driver()] { time->at = driver->now(); };
    return detail::with_task(note, [&](detail::task_ref task) {
        stream.queue->reserve(0, task);
        stream.reserve_pending(0, 0);
        order::mark fresh = stream.sequence.enter_foreign();
        stream.pending.add(fresh.at.at, from, runtime::pending_kind::moment, nullptr);
        stream.queue->submit(fresh.at.at, {task, from, runtime::work_kind::moment});
        return fresh;
    });
}

/// A moment whose time the program asks for; `which` is for messages. Throws state_error if it has none.
struct timed_moment {
    frontiers::point at;
    std::shared_ptr<const runtime::time_noted> time;
    const runtime::device_state* device = nullptr;

    [[nodiscard]] std::string device_name() const { return std::string(device->driver().name()); }

    timed_moment(runtime::event_state& of, const char* which) {
        {
            const std::lock_guard lock(of.mutex);
            at = of.recorded.at;
            time = of.time;
            device = of.device;
        }
        const std::string event = std::string("the event at the ") + which + " of the time asked for ";
        if (!of.timing) {
            throw state_error(event +
                              "is not timed: make it with weir::event({.timing = true}), or record it with "
                              "stream.record({.timing = true})");
        }
        if (at.at == 0) {
            throw state_error(event + "was never recorded: call record(stream) before the work, or behind it");
        }
        if (!backend::timeline_table::instance().host_ask(at)) {
            throw state_error(event + "is not over yet: call synchronize() on it first");
        }
    }
};

}  // namespace

std::uint64_t runtime::next_event_number() noexcept {
    static std::atomic<std::uint64_t> next{1};
    return next.fetch_add(1, std::memory_order_relaxed);
}

runtime::event_state::event_state(bool timed) : id(next_event_number()), timing(timed) {}

event::event() : event(event_options{}) {}

event::event(event_options options) : state_(std::make_shared<runtime::event_state>(options.timing)) {}

event::event(const completion& of) : event() {
    state_->recorded = {{of.timeline(detail::key), of.epoch(detail::key)}, of.known(detail::key)};
    state_->of_operation = true;
}

void event::record(const stream_ref& on, source_location where) {
    runtime::fork_guard::expect_usable();
    runtime::stream_state& stream = on.state(detail::key);
    const std::shared_ptr<runtime::time_noted> time =
        state_->timing ? std::make_shared<runtime::time_noted>() : nullptr;
    stream.make_ready(where);
    std::unique_lock lock(state_->mutex);
    std::unique_lock stream_lock(stream.mutex);
    stream.expect_open();
    const order::mark at = time ? note_time(stream, time, where) : stream.record_end(where);
    state_->recorded = at;
    state_->of_operation = false;
    state_->time = time;
    state_->device = &stream.device();
    state_->native.reset();
    if (!time) {
        // Under the stream's lock, so that no operation of another thread gets before the driver's event.
        stream.queue->event_recorded(at.at.at);
    }
    // Under the stream's lock, so that observers see no operation between the recorded point and this report.
    observe::observers::notify(
        [&](observe::observer& one) { one.event_recorded(state_->id, stream.info(), at.at, where); });
    stream_lock.unlock();
    lock.unlock();
    if (time && !stream.is_shared()) {
        stream.queue->flush(at.at);
        stream.queue->event_recorded(at.at.at);
    }
    stream.publish_end(at);
}

void event::wait(source_location where) const {
    const auto [at, of_operation] = [&] {
        const std::lock_guard lock(state_->mutex);
        return std::pair(state_->recorded.at, state_->of_operation);
    }();
    if (at.at == 0) {
        return;
    }
    runtime::host_wait(at, where);
    if (of_operation) {
        runtime::failures::throw_if_failed(at);
    } else {
        runtime::failures::throw_first_unreported(at);
    }
}

void event::wait(const stream_ref& waiter, source_location where) const {
    runtime::wait_for(waiter.state(detail::key), *state_, where);
}

bool event::done(source_location where) const {
    const frontiers::point at = state_->get().at;
    return at.at == 0 || runtime::host_ask(at, where);
}

double event::elapsed_ms(const event& end) const {
    const timed_moment first(*state_, "start");
    const timed_moment last(*end.state_, "end");
    if (first.device != last.device) {
        throw state_error("the events are of two devices, " + first.device_name() + " and " + last.device_name() +
                          ", whose clocks are not the same: record both on one");
    }
    return std::chrono::duration<double, std::milli>(last.time->at - first.time->at).count();
}

bool event::is_timed() const noexcept { return state_->timing; }

std::string event::to_string() const {
    frontiers::point at;
    const runtime::device_state* device = nullptr;
    {
        const std::lock_guard lock(state_->mutex);
        at = state_->recorded.at;
        device = state_->device;
    }
    std::string text = "<weir.event #" + std::to_string(state_->id) + (state_->timing ? " timed" : "");
    if (at.at == 0) {
        return text + " never recorded>";
    }
    if (device != nullptr) {
        text += " on " + std::string(device->driver().name());
    }
    return text + (backend::timeline_table::instance().is_complete(at) ? ", over>" : ", not over>");
}

void* event::handle() const {
    frontiers::point at;
    {
        const std::lock_guard lock(state_->mutex);
        if (state_->native) {
            return state_->native.get();
        }
        at = state_->recorded.at;
    }
    const backend::driver* const of = at.at == 0 ? nullptr : backend::timeline_table::instance().at(at.timeline).of();
    if (of == nullptr) {
        return nullptr;
    }
    runtime::fork_guard::expect_usable();
    if (state_->device != nullptr) {
        state_->device->expect_usable();
    }
    std::shared_ptr<void> made = of->native_event(at);
    const std::lock_guard lock(state_->mutex);
    if (!state_->native && state_->recorded.at == at) {
        state_->native = std::move(made);
    }
    return state_->native.get();
}

completion event::recorded() const {
    const order::mark mark = state_->get();
    return {detail::key, mark.at.timeline, mark.at.at, mark.known};
}

std::uint64_t event::unique_id() const noexcept { return state_->id; }

std::string completion::to_string() const {
    if (epoch_ == 0) {
        return "<weir.completion of nothing>";
    }
    std::string stream = "a stream that is gone";
    runtime::stream_registry::with(timeline_, [&](const runtime::stream_state& one) {
        if (one.info().before < epoch_) {
            stream = "\"" + std::string(one.info().name) + "\" on " + std::string(one.info().device);
        }
    });
    const bool over = backend::timeline_table::instance().is_complete({timeline_, epoch_});
    return "<weir.completion epoch " + std::to_string(epoch_) + " of " + stream + (over ? ", over>" : ", not over>");
}

bool completion::done(source_location where) const {
    return epoch_ == 0 || runtime::host_ask({timeline_, epoch_}, where);
}

void completion::synchronize(source_location where) const {
    if (epoch_ == 0) {
        return;
    }
    runtime::host_wait({timeline_, epoch_}, where);
    runtime::failures::throw_if_failed({timeline_, epoch_});
}

}  // namespace weir
