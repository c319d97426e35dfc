#include "memory/device_memory.hpp"

#include <memory>

#include "backend/timeline.hpp"
#include "runtime/fork.hpp"
#include "runtime/observer.hpp"
#include "runtime/watchdog.hpp"
#include "weir/error.hpp"

namespace weir::memory {

pool& pool_of(runtime::device_state& device) {
    // Pairs with the exchange below: whoever sees the pointer sees the pool.
    pool* known = device.pool.load(std::memory_order_acquire);
    if (known != nullptr) {
        return *known;
    }
    auto made = std::make_unique<pool>(device.driver(), backend::timeline_table::instance(), &device);
    if (device.pool.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) {
        return *made.release();
    }
    return *known;  // another thread was faster
}

namespace {

block& take_slowly(pool& from, std::size_t bytes, runtime::stream_state& on, const source_location& where) {
    on.device().driver().look_at_all();
    for (;;) {
        const pool::answer answer = from.take(bytes, {on.timeline(), on.tail().known});
        if (answer.taken != nullptr) {
            return *answer.taken;
        }
        if (!answer.wait_for) {
            throw out_of_memory(from.explain_shortage(bytes));
        }
        // Not told to observers: the program did not ask for this wait and must not count on it.
        const runtime::watchdog::waits_in here(where);
        backend::timeline_table::instance().host_wait(*answer.wait_for);
    }
}

}  // namespace

detail::owner<block> allocate(std::size_t bytes, runtime::stream_state& on, const source_location& where) {
    runtime::fork_guard::expect_not_forked();
    on.expect_open();
    pool& from = pool_of(on.device());
    block* taken = from.take_recent(bytes, on.timeline());
    if (taken == nullptr) {
        taken = &take_slowly(from, bytes, on, where);
    }
    detail::owner<block> made(taken);
    runtime::observers::tell([&](runtime::observer& one) {
        one.allocated({made->id(), made->size(), on.info().device, reinterpret_cast<std::uintptr_t>(made->address),
                       &on.info(), where});
    });
    return made;
}

}  // namespace weir::memory
