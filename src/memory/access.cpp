#include "memory/access.hpp"

#include <mutex>
#include <optional>
#include <vector>

#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "observe/deferred_reports.hpp"
#include "observe/observers.hpp"
#include "order/mode.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/diagnostics/watchdog.hpp"
#include "runtime/failures/failures.hpp"
#include "runtime/failures/poison.hpp"
#include "runtime/failures/settled_failures.hpp"
#include "runtime/host/fork.hpp"
#include "runtime/submission/foreign_visit.hpp"
#include "runtime/submission/observed.hpp"
#include "runtime/submission/ordering.hpp"

namespace weir::memory {

namespace {

/// Records the host's access; everything that it waits for is complete. Under the lock of `of`. Returns why the host may not have what it
/// asks for; null if it may.
runtime::failure_ptr enter(runtime::resource& of, const order::footprint& where, order::access_mode mode,
                           ordering_mode ordering, const source_location& from) {
    const bool reads = mode == order::access_mode::read;
    if (!reads && !of.history.empty()) {
        // Epoch 0 is "before everything": no operation will wait for this access.
        of.history.reserve(1);
        of.history.record(where, mode, {}, backend::timeline_table::instance());
    }
    // Reported even if the access is refused: it has waited, and whether what it was to read is valid changes no order.
    observe::observers::notify(
        [&](observe::observer& one) { one.host_access(runtime::observed(of, where, mode, ordering), from); });
    if (!runtime::failures::any()) {
        return nullptr;
    }
    if (reads) {
        return runtime::poison::find(of.id(), where);
    }
    // What the host changes is valid, whatever became of earlier writes.
    runtime::poison::heal(of.id(), where);
    return nullptr;
}

}  // namespace

bool nothing_pending(runtime::resource& of, const order::footprint& where, order::access_mode mode) {
    const auto find_pending = [&] {
        std::optional<frontiers::point> pending;
        const std::lock_guard lock(of.mutex);
        of.history.conflicts(where, mode, [&](const order::past_access& past, order::reason) {
            if (!pending && !backend::timeline_table::instance().is_complete(past.when.at)) {
                pending = past.when.at;
            }
        });
        return pending;
    };
    const std::optional<frontiers::point> pending = find_pending();
    if (pending && (!backend::timeline_table::instance().host_ask(*pending) || find_pending())) {
        return false;
    }
    if (!of.packages().any()) {
        return true;
    }
    runtime::foreign_visit visit;
    visit.meet({&of, where, mode}, false);
    return visit.idle(source_location::current());
}

bool is_ready_for(runtime::resource& of, const order::footprint& where, order::access_mode mode) {
    if (!nothing_pending(of, where, mode)) {
        return false;
    }
    observe::observers::notify([&](observe::observer& one) {
        one.host_found_ready({of.id(), of.size(), where, mode, ordering_mode::automatic, of.is_internal()});
    });
    return true;
}

void wait_for_conflicts(runtime::resource& of, const order::footprint& where, order::access_mode mode,
                        const source_location& from, bool copies) {
    runtime::fork_guard::expect_usable();
    if (of.memory_of() != nullptr) {
        of.memory_of()->expect_usable();
    }
    const ordering_mode ordering =
        order::effective_mode(of.ordering(), std::nullopt, runtime::scope_ordering(), runtime::process_ordering());
    const bool hazards = ordering == ordering_mode::automatic || observe::observers::want_safety();
    if (of.packages().any()) {
        runtime::foreign_visit::expect_allowed({&of, where, mode});
    }
    if (hazards && of.packages().any()) {
        runtime::foreign_visit visit;
        visit.meet({&of, where, mode}, ordering != ordering_mode::automatic);
        visit.enter(nullptr, from);
        visit.wait();
    }
    std::vector<frontiers::point> pending;
    runtime::failure_ptr refused;
    do {
        for (const frontiers::point p : pending) {
            const runtime::watchdog::waits_in here(from);
            backend::timeline_table::instance().host_wait(p);
        }
        pending.clear();
        // Checks again after each wait: an operation that was being enqueued when the view was entered may not have seen the view, and its
        // caller does not wait for it.
        const std::lock_guard lock(of.mutex);
        of.history.conflicts(where, mode, [&](const order::past_access& past, order::reason) {
            if ((hazards || order::is_always_ordered(past, mode)) &&
                !backend::timeline_table::instance().is_complete(past.when.at)) {
                pending.push_back(past.when.at);
            }
        });
        if (pending.empty()) {
            refused = enter(of, where, mode, ordering, from);
            if (copies) {
                of.begin_copy(where, mode);
            }
        }
    } while (!pending.empty());
    if (runtime::failures::any()) {
        runtime::forget_settled_failures();
    }
    if (refused) {
        runtime::failures::raise(refused);
    }
    observe::deferred_reports::settle();
}

}  // namespace weir::memory
