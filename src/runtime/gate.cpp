#include "backend/timeline.hpp"
#include "runtime/fork.hpp"
#include "runtime/stream_state.hpp"
#include "weir/testing.hpp"

namespace weir::testing {

namespace {
backend::timeline_table& timelines() { return backend::timeline_table::instance(); }
}  // namespace

gate::gate() : timeline_(timelines().acquire()), opening_(timelines().completed(timeline_) + 1) {}

gate::~gate() {
    open();
    timelines().release(timeline_);
}

void gate::hold(const stream_ref& stream, source_location where) {
    runtime::fork_guard::expect_not_forked();
    runtime::stream_state& held = stream.state();
    const std::lock_guard lock(held.mutex);
    held.expect_open();
    held.queue->reserve(1, {});
    // The order engine knows the gate as an operation without accesses: how long it takes is not its business.
    held.queue->wait({timeline_, opening_});
    const order::mark at = held.sequence.reserve();
    held.queue->submit(at.at.at, {});
    const runtime::observed_operation told{&held.info(), at.at.at, {"gate", where}, runtime::work_kind::device, {}, {},
                                           {},           {}};
    runtime::observers::tell([&](runtime::observer& one) { one.operation(told); });
}

void gate::open() noexcept {
    if (!is_open_) {
        is_open_ = true;
        timelines().at(timeline_).complete(opening_);
    }
}

}  // namespace weir::testing
