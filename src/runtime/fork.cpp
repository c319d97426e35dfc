#include "runtime/fork.hpp"

#include <pthread.h>

#include "weir/error.hpp"

namespace weir::runtime {

void fork_guard::arm() {
    [[maybe_unused]] static const int armed =
        ::pthread_atfork(nullptr, nullptr, [] { forked_.store(true, std::memory_order_relaxed); });
}

void fork_guard::refuse() {
    throw state_error(
        "this process was forked from one that had used Weir, and its streams have no threads here: fork before the "
        "first "
        "use of Weir, or exec a new program in the child");
}

}  // namespace weir::runtime
