#include "memory/access.hpp"

#include <mutex>
#include <optional>
#include <vector>

#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "order/mode.hpp"
#include "runtime/device_state.hpp"
#include "runtime/failures.hpp"
#include "runtime/foreign_visit.hpp"
#include "runtime/fork.hpp"
#include "runtime/observer.hpp"
#include "runtime/ordering.hpp"
#include "runtime/poison.hpp"
#include "runtime/trouble.hpp"
#include "runtime/watchdog.hpp"

namespace weir::memory {

namespace {

/// Everything that the host waits for is over. Under the lock of `of`. Why the host may not have what it asks for; null if
/// it may.
runtime::failure_ptr enter(runtime::resource& of, const order::footprint& where, order::access_mode mode,
                           ordering_mode ordering, const source_location& from) {
    const bool reads = mode == order::access_mode::read;
    if (!reads && !of.history.empty()) {
        // Epoch 0 is "before everything": nobody will wait for this access.
        of.history.reserve(1);
        of.history.record(where, mode, {}, backend::timeline_table::instance());
    }
    // Of one that is refused as well: it has waited, and whether what it was to read is valid changes no order.
    runtime::observers::tell([&](runtime::observer& one) {
        one.host_access({of.id(), of.size(), where, mode, ordering, of.is_internal()}, from);
    });
    if (!runtime::failures::any()) {
        return nullptr;
    }
    if (reads) {
        return runtime::poison::find(of.id(), where);
    }
    // What the host changes is as it says, whatever became of earlier writes.
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

void wait_for_conflicts(runtime::resource& of, const order::footprint& where, order::access_mode mode,
                        const source_location& from, bool copies) {
    runtime::fork_guard::expect_usable();
    if (of.memory_of() != nullptr) {
        of.memory_of()->expect_usable();
    }
    const ordering_mode ordering =
        order::effective_mode(of.ordering(), std::nullopt, runtime::scope_ordering(), runtime::process_ordering());
    const bool hazards = ordering == ordering_mode::automatic || runtime::observers::want_safety();
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
        // Looks again after each wait: an operation that was on its way in when the view was entered may not have seen
        // it, and nobody waits for that one.
        const std::lock_guard lock(of.mutex);
        of.history.conflicts(where, mode, [&](const order::past_access& past, order::reason) {
            if ((hazards || past.former_owner) && !backend::timeline_table::instance().is_complete(past.when.at)) {
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
        runtime::ease_trouble();
    }
    if (refused) {
        runtime::failures::raise(refused);
    }
    runtime::verdicts::settle();
}

}  // namespace weir::memory
