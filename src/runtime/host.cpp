#include "runtime/host.hpp"

#include "backend/timeline.hpp"
#include "runtime/fork.hpp"
#include "runtime/observer.hpp"

namespace weir::runtime {

void host_wait(frontiers::point p, const source_location& where) {
    fork_guard::expect_not_forked();
    backend::timeline_table::instance().host_wait(p);
    observers::tell([&](observer& one) { one.host_waited(p, where); });
}

bool host_ask(frontiers::point p, const source_location& where) {
    if (!backend::timeline_table::instance().is_complete(p)) {
        return false;
    }
    observers::tell([&](observer& one) { one.host_waited(p, where); });
    return true;
}

}  // namespace weir::runtime
