#include "memory/access.hpp"

#include <mutex>
#include <vector>

#include "backend/timeline.hpp"
#include "order/mode.hpp"
#include "runtime/failures.hpp"
#include "runtime/fork.hpp"
#include "runtime/observer.hpp"
#include "runtime/ordering.hpp"

namespace weir::memory {

namespace {

const backend::timeline_table& timelines() noexcept { return backend::timeline_table::instance(); }

/// Everything that the host waits for is over. Under the lock of `of`.
void enter(runtime::resource& of, const order::footprint& where, order::access_mode mode, ordering_mode ordering,
           const source_location& from) {
    if (mode == order::access_mode::read) {
        of.history.conflicts(where, mode, [](const order::past_access& past, order::reason) {
            if (!past.former_owner) {
                runtime::failures::throw_if_failed(past.when.at);
            }
        });
    } else if (!of.history.empty()) {
        // What the host changes is as it says, whatever became of earlier writes. Epoch 0 is "before everything":
        // nobody will wait for this access.
        of.history.reserve(1);
        of.history.record(where, mode, {}, timelines());
    }
    runtime::observers::tell([&](runtime::observer& one) {
        one.host_access({of.id(), of.size(), where, mode, ordering}, from);
    });
}

}  // namespace

bool nothing_pending(runtime::resource& of, const order::footprint& where, order::access_mode mode) {
    bool pending = false;
    const std::lock_guard lock(of.mutex);
    of.history.conflicts(where, mode, [&](const order::past_access& past, order::reason) {
        pending = pending || !timelines().is_complete(past.when.at);
    });
    return !pending;
}

void wait_for_conflicts(runtime::resource& of, const order::footprint& where, order::access_mode mode,
                        const source_location& from) {
    runtime::fork_guard::expect_not_forked();
    const ordering_mode ordering =
        order::effective_mode(of.ordering(), std::nullopt, runtime::scope_ordering(), runtime::process_ordering());
    const bool hazards = ordering == ordering_mode::automatic || runtime::observers::want_safety();
    std::vector<frontiers::point> pending;
    do {
        for (const frontiers::point p : pending) {
            timelines().host_wait(p);
        }
        pending.clear();
        // Looks again after each wait: an operation that was on its way in when the view was entered may not have seen
        // it, and nobody waits for that one.
        const std::lock_guard lock(of.mutex);
        of.history.conflicts(where, mode, [&](const order::past_access& past, order::reason) {
            if ((hazards || past.former_owner) && !timelines().is_complete(past.when.at)) {
                pending.push_back(past.when.at);
            }
        });
        if (pending.empty()) {
            enter(of, where, mode, ordering, from);
        }
    } while (!pending.empty());
    runtime::verdicts::settle();
}

}  // namespace weir::memory
