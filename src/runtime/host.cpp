#include "runtime/host.hpp"

#include "backend/timeline.hpp"
#include "runtime/failures.hpp"
#include "runtime/fork.hpp"
#include "runtime/observer.hpp"
#include "runtime/trouble.hpp"
#include "runtime/watchdog.hpp"
#include "weir/detail/interruption.hpp"

namespace weir::runtime {

void host_wait(frontiers::point p, const source_location& where) {
    fork_guard::expect_not_forked();
    {
        const watchdog::waits_in here(where);
        backend::timeline_table::instance().host_wait(p);
    }
    if (failures::any()) {
        ease_trouble();
    }
    observers::tell([&](observer& one) { one.host_waited(p, where); });
}

void host_wait_or_end(frontiers::point p, const source_location& where) {
    try {
        host_wait(p, where);
    } catch (...) {
        const weir::detail::interruptible* const answers = weir::detail::interruptible::current();
        if (answers == nullptr || !answers->has_ended()) {
            throw;
        }
    }
}

bool host_ask(frontiers::point p, const source_location& where) {
    if (!backend::timeline_table::instance().host_ask(p)) {
        return false;
    }
    observers::tell([&](observer& one) { one.host_waited(p, where); });
    return true;
}

}  // namespace weir::runtime
