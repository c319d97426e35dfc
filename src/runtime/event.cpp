#include "weir/event.hpp"

#include <atomic>

#include "runtime/event_state.hpp"
#include "runtime/failures.hpp"
#include "runtime/fork.hpp"
#include "runtime/host.hpp"
#include "runtime/stream_state.hpp"

namespace weir {

namespace {

std::uint64_t next_event_id() noexcept {
    static std::atomic<std::uint64_t> next{1};
    return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

runtime::event_state::event_state() : id(next_event_id()) {}

event::event() : state_(std::make_shared<runtime::event_state>()) {}

event::event(const completion& of) : event() { state_->recorded = {{of.timeline(), of.epoch()}, of.known()}; }

void event::record(const stream_ref& on, source_location where) {
    runtime::fork_guard::expect_not_forked();
    runtime::stream_state& stream = on.state();
    const std::lock_guard lock(state_->mutex);
    const std::lock_guard stream_lock(stream.mutex);
    stream.expect_open();
    state_->recorded = stream.sequence.record();
    // Under the stream's lock: no operation comes between the moment and the news of it.
    runtime::observers::tell(
        [&](runtime::observer& one) { one.event_recorded(state_->id, stream.info(), state_->recorded.at, where); });
}

void event::wait(source_location where) const {
    const frontiers::point at = state_->get().at;
    if (at.at == 0) {
        return;
    }
    runtime::host_wait(at, where);
    runtime::failures::throw_first_unreported(at);
}

void event::wait(const stream_ref& waiter, source_location where) const { waiter.wait(*this, where); }

bool event::done(source_location where) const {
    const frontiers::point at = state_->get().at;
    return at.at == 0 || runtime::host_ask(at, where);
}

completion event::recorded() const {
    const order::mark mark = state_->get();
    return {mark.at.timeline, mark.at.at, mark.known};
}

std::uint64_t event::unique_id() const noexcept { return state_->id; }

bool completion::done(source_location where) const {
    return epoch_ == 0 || runtime::host_ask({timeline_, epoch_}, where);
}

void completion::synchronize(source_location where) const {
    if (epoch_ == 0) {
        return;
    }
    runtime::host_wait({timeline_, epoch_}, where);
    runtime::failures::throw_first_unreported({timeline_, epoch_});
}

}  // namespace weir
