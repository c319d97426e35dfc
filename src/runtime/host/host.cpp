#include "runtime/host/host.hpp"

#include "backend/timeline.hpp"
#include "observe/observers.hpp"
#include "runtime/diagnostics/watchdog.hpp"
#include "runtime/failures/failures.hpp"
#include "runtime/failures/settled_failures.hpp"
#include "runtime/host/fork.hpp"
#include "weir/detail/interruption.hpp"

namespace weir::runtime {

void host_wait(frontiers::point p, const source_location& where) {
    fork_guard::expect_usable();
    {
        const watchdog::waits_in here(where);
        backend::timeline_table::instance().host_wait(p);
    }
    if (failures::any()) {
        forget_settled_failures();
    }
    observe::observers::notify([&](observe::observer& one) { one.host_waited(p, where); });
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
    observe::observers::notify([&](observe::observer& one) { one.host_waited(p, where); });
    return true;
}

}  // namespace weir::runtime
