#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "observe/observers.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/host/fork.hpp"
#include "runtime/streams/stream_state.hpp"
#include "weir/detail/fork_section.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/detail/site.hpp"
#include "weir/error.hpp"
#include "weir/testing.hpp"

namespace weir::testing {

gate::gate()
    : timeline_(backend::timeline_table::instance().acquire()),
      opening_(backend::timeline_table::instance().completed(timeline_) + 1) {}

gate::~gate() {
    if (runtime::fork_guard::is_refused()) {
        return;  // nothing waits for it in this process, and a thread that is gone may hold the lock
    }
    open();
    backend::timeline_table::instance().release(timeline_);
}

void gate::hold(const stream_ref& stream, source_location where) {
    runtime::fork_guard::expect_usable();
    runtime::stream_state& held = stream.state(detail::key);
    if (held.device().kind() == device_kind::cpu_inline) {
        throw state_error(
            "a gate cannot hold a stream of cpu:inline: its operations run when they are enqueued, and the "
            "thread that enqueues would wait for a gate that no other thread opens. Use a stream of cpu or sim");
    }
    held.expect_no_capture();
    std::unique_lock lock(held.mutex);
    held.expect_open();
    held.queue->reserve(1, {});
    held.reserve_pending(0, 1);
    // The order engine sees the gate as an operation without accesses: how long the gate stays closed does not concern it.
    const frontiers::point opened{timeline_, opening_};
    held.queue->wait(opened);
    const order::mark at = held.sequence.reserve();
    held.pending.add(at.at.at, {"gate", where}, runtime::pending_kind::gate, &opened);
    held.queue->submit(at.at.at, {{}, {}});
    const observe::observed_operation seen{&held.info(), at.at.at, {"gate", where}, runtime::work_kind::gate, {}, {},
                                           {},           {}};
    observe::observers::notify([&](observe::observer& one) { one.operation(seen); });
    lock.unlock();
    held.queue->flush(at.at);
}

void gate::open() noexcept {
    if (!is_open_.exchange(true)) {
        const detail::fork_section whole;
        backend::timeline_table::instance().at(timeline_).complete(opening_);
    }
}

}  // namespace weir::testing
