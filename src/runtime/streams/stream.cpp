#include "weir/stream.hpp"

#include <utility>

#include "backend/timeline.hpp"
#include "observe/deferred_reports.hpp"
#include "observe/observers.hpp"
#include "order/plan.hpp"
#include "order/wait_counts.hpp"
#include "runtime/failures/failures.hpp"
#include "runtime/host/fork.hpp"
#include "runtime/host/host.hpp"
#include "runtime/streams/event_state.hpp"
#include "runtime/streams/stream_state.hpp"
#include "weir/event.hpp"

namespace weir {

namespace {

/// Device-side: `stream` continues once `given` is complete, or what `of` holds, if that is not null. The wait takes an epoch of its own, so
/// that a wait for the stream's tail covers it.
void wait_for(runtime::stream_state& stream, const order::mark& given, runtime::event_state* of,
              const source_location& where) {
    runtime::fork_guard::expect_usable();
    stream.make_ready(where);
    // Until observers know of the wait, so that they see no other record of the event between the moment that is waited for and the wait.
    std::unique_lock<detail::mutex> event_lock;
    if (of != nullptr) {
        event_lock = std::unique_lock(of->mutex);
    }
    const order::mark target = of != nullptr ? of->recorded : given;
    const std::uint64_t event = of != nullptr ? of->id : 0;
    const order::watermarks& completed = backend::timeline_table::instance();
    std::unique_lock lock(stream.mutex);
    stream.expect_open();
    order::plan plan = stream.sequence.next(completed);
    plan.need(target, order::reason::dependency);
    const bool issued = !plan.waits().empty();
    stream.needs.counts.elided += plan.elided();
    // For observers, completion orders nothing. They must be able to tell the moments before and after an implied wait apart, so
    // with observers an implied wait takes an epoch as well.
    const bool takes_epoch = issued || observe::observers::any();
    if (takes_epoch) {
        stream.expect_not_behind_itself(plan.waits());
        stream.queue->reserve(plan.waits().size(), {});
        stream.reserve_pending(0, 1);
        order::clock after = plan.clock_after();
        const frontiers::epoch at = stream.sequence.reserve(std::move(after)).at.at;
        stream.pending.add(at, {"wait", where}, runtime::pending_kind::wait, issued ? &target.at : nullptr);
        if (issued) {
            stream.queue->wait(target.at);
            ++stream.needs.counts.issued;
        }
        stream.queue->submit(at, {{}, {}});
    }
    observe::observers::notify([&](observe::observer& one) {
        one.stream_waits(stream.info(), stream.sequence.tail(), target.at, event,
                         issued ? observe::wait_made::issued : observe::wait_made::implied, where);
    });
    const frontiers::point tail{stream.timeline(), stream.sequence.tail()};
    lock.unlock();
    if (event_lock) {
        event_lock.unlock();
    }
    if (takes_epoch) {
        stream.queue->flush(tail);
    }
    observe::deferred_reports::settle();
}

}  // namespace

void runtime::wait_for(stream_state& stream, event_state& of, const source_location& where) {
    weir::wait_for(stream, {}, &of, where);
}

void stream_ref::synchronize(source_location where) const {
    const frontiers::point tail = state_->now(where).at;
    runtime::host_wait(tail, where);
    runtime::failures::throw_first_unreported(tail);
}

bool stream_ref::done(source_location where) const { return state_->idle(where); }

void stream_ref::wait(const event& what, source_location where) const { what.wait(*this, where); }

void stream_ref::wait(const stream_ref& other, source_location where) const {
    other.state_->expect_open();
    wait_for(*state_, other.state_->now(where), nullptr, where);
}

void stream_ref::wait(const completion& what, source_location where) const {
    wait_for(*state_, {{what.timeline(detail::key), what.epoch(detail::key)}, what.known(detail::key)}, nullptr, where);
}

event stream_ref::record(source_location where) const { return record(event_options{}, where); }

event stream_ref::record(event_options options, source_location where) const {
    event made(options);
    made.record(*this, where);
    return made;
}

void stream_ref::set_ordering(std::optional<ordering_mode> mode) const noexcept { state_->set_ordering(mode); }
std::optional<ordering_mode> stream_ref::ordering() const noexcept { return state_->ordering(); }

device stream_ref::device() const noexcept { return weir::device(detail::key, state_->device()); }

void* stream_ref::handle() const { return state_->hand_out(); }

bool stream_ref::shared() const noexcept { return state_->is_shared(); }

int stream_ref::priority() const noexcept { return state_->priority(); }

bool stream_ref::blocking() const noexcept { return state_->blocking(); }

std::string_view stream_ref::name() const noexcept { return state_->info().name; }

std::uint64_t stream_ref::unique_id() const noexcept { return state_->id(); }

std::string stream_ref::to_string() const {
    const bool closed = state_->closed.load(std::memory_order_acquire);
    return "<weir.stream " + std::string(state_->info().device) + " #" + std::to_string(state_->id()) + " \"" +
           std::string(name()) + "\" priority=" + std::to_string(priority()) +
           (closed                 ? " closed>"
            : state_->is_adopted() ? " adopted>"
                                   : " owned>");
}

stream::stream(weir::device on, stream_options options)
    : stream(detail::key, runtime::stream_state::make(on.state(detail::key), {options.priority, options.blocking},
                                                      std::move(options.name))) {}

stream::stream(detail::passkey key, detail::owner<runtime::stream_state> state) noexcept
    : stream_ref(key, *state), keep_(std::move(state)) {}

stream stream::adopt(native_queue& native, std::shared_ptr<void> owner) {
    return stream(detail::key, runtime::stream_state::adopt(native, std::move(owner)));
}

stream stream::adopt(native_stream handle, weir::device on, std::shared_ptr<void> owner) {
    return stream(detail::key, runtime::stream_state::adopt(on.state(detail::key), handle.handle, std::move(owner)));
}

stream::stream(const stream& other) noexcept = default;
stream& stream::operator=(const stream& other) noexcept = default;
stream::~stream() = default;

void stream::close() noexcept {
    // Under the stream's lock: when this returns, no call that has found the stream open is still in progress.
    const std::lock_guard lock(state(detail::key).mutex);
    state(detail::key).closed.store(true, std::memory_order_release);
}

stream::operator bool() const noexcept { return !state(detail::key).closed.load(std::memory_order_acquire); }

}  // namespace weir
