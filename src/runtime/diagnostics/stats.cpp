#include "weir/stats.hpp"

#include <atomic>

#include "backend/event_counts.hpp"
#include "runtime/host/fork.hpp"
#include "runtime/streams/stream_registry.hpp"

namespace weir {

ordering_statistics stats() noexcept {
    using backend::event_counts;
    ordering_statistics now;
    // In a child of a fork that Weir does not follow, threads that are gone may hold the streams' locks.
    if (!runtime::fork_guard::is_refused()) {
        const runtime::stream_registry::totals all = runtime::stream_registry::count();
        now.operations = all.operations;
        now.waits_issued = all.waits.issued;
        now.waits_elided = all.waits.elided;
    }
    now.late_waits = event_counts::late_waits.load(std::memory_order_relaxed);
    now.driver_events = event_counts::made.load(std::memory_order_relaxed);
    return now;
}

}  // namespace weir
