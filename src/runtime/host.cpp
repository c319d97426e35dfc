#include "runtime/host.hpp"

#include "backend/timeline.hpp"
#include "runtime/failures.hpp"
#include "runtime/fork.hpp"
#include "runtime/observer.hpp"
#include "runtime/trouble.hpp"
#include "runtime/watchdog.hpp"

namespace weir::runtime {

void host_wait(frontiers::point p, const source_location& where) {
    fork_guard::expect_usable();
    {
        const watchdog::waits_in here(where);
        backend::timeline_table::instance().host_wait(p);
    }
    if (failures::any()) {
        ease_trouble();
    }
    observers::tell([&](observer& one) { one.host_waited(p, where); });
}

bool host_ask(frontiers::point p, const source_location& where) {
    if (!backend::timeline_table::instance().host_ask(p)) {
        return false;
    }
    observers::tell([&](observer& one) { one.host_waited(p, where); });
    return true;
}

}  // namespace weir::runtime
