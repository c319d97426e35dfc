#include "memory/device_memory.hpp"

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/driver.hpp"
#include "backend/cuda/driver_api.hpp"
#include "backend/cuda/host_memory.hpp"
#include "backend/sim/host_memory.hpp"
#include "backend/timeline.hpp"
#include "memory/quarantine.hpp"
#include "runtime/cuda_simulation.hpp"
#include "runtime/fork.hpp"
#include "runtime/observer.hpp"
#include "runtime/standstill.hpp"
#include "runtime/watchdog.hpp"
#include "weir/detail/mutex.hpp"
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

/// Where memory comes from that the host and CUDA devices both reach: managed memory of a CUDA device, else pinned memory. Where
/// CUDA devices are simulated, or there are none, it is plain memory of the host (rule L6).
std::unique_ptr<backend::memory_source> shared_memory_of(runtime::device_state& device) {
    backend::driver& driver = device.driver();
    if (device.kind() == device_kind::cuda) {
        return std::make_unique<backend::cuda::managed_memory>(backend::cuda::context_of(driver), driver.name());
    }
    if (device.kind() == device_kind::sim) {
        return std::make_unique<backend::sim::host_memory>(std::string(driver.name()) + " (managed)",
                                                           runtime::cpu_device().driver(), false);
    }
    const bool is_simulated = runtime::cuda_simulation::devices() > 0;
    if (is_simulated || backend::cuda::machine_driver().devices == 0) {
        return std::make_unique<backend::sim::host_memory>(std::string(driver.name()) + " (pinned)", driver, true);
    }
    return std::make_unique<backend::cuda::pinned_memory>(backend::cuda::context_of(runtime::cuda_device(0).driver()),
                                                          driver);
}

}  // namespace

pool& shared_pool_of(runtime::device_state& device) {
    device.expect_usable();
    if (backend::cuda::is_driver_of_parent()) {
        static_cast<void>(runtime::cuda_device(0));  // says so: what is in the pool is the driver's
    }
    if (pool* const known = device.shared_pool.load(std::memory_order_acquire)) {
        return *known;
    }
    static detail::mutex
        making;  // guards the making of pools; the driver is called under it, which allocates nothing there
    const std::lock_guard lock(making);
    if (pool* const known = device.shared_pool.load(std::memory_order_relaxed)) {
        return *known;
    }
    std::unique_ptr<backend::memory_source> source = shared_memory_of(device);
    auto made = std::make_unique<pool>(*source, backend::timeline_table::instance(), &device);
    static_cast<void>(source.release());  // lives as long as the pool: for ever
    device.shared_pool.store(made.get(), std::memory_order_release);
    return *made.release();
}

namespace {

/// Null: not made yet, or in the child of a fork, where what is in the pool is the driver's of the parent.
std::array<pool*, 2> pools_of(const runtime::device_state& device) noexcept {
    return {device.pool.load(std::memory_order_acquire),
            backend::cuda::is_driver_of_parent() ? nullptr : device.shared_pool.load(std::memory_order_acquire)};
}

}  // namespace

void give_back_all(runtime::device_state& device) noexcept {
    device.driver().look_at_all();
    for (pool* const each : pools_of(device)) {
        if (each != nullptr) {
            each->give_back();
        }
    }
    device.driver().trim();
}

std::string where_memory_is(runtime::device_state& device, const pool* but) {
    std::string text;
    for (pool* const each : pools_of(device)) {
        if (each != nullptr && each != but) {
            const statistics now = each->stats();
            text += " Weir's pool of " + std::string(each->source().name()) + " holds " + std::to_string(now.live) +
                    " bytes live, " + std::to_string(now.pending + now.quarantined) + " pending, " +
                    std::to_string(now.cached) + " cached.";
        }
    }
    const std::string more = device.driver().about_shortage();
    return text + (more.empty() ? "" : " " + more);
}

namespace {

bool is_complete(frontiers::point at) { return backend::timeline_table::instance().is_complete(at); }

block& take_slowly(pool& from, std::size_t bytes, runtime::stream_state& on, const source_location& where) {
    runtime::device_state& device = on.device();
    device.driver().look_at_all();
    bool is_given_back = false;           // what others keep, since the last wait
    std::vector<frontiers::point> gated;  // pending memory that only code of the host can let go on
    std::string gate;
    for (;;) {
        const pool::answer answer = from.take(bytes, {on.timeline(), on.tail().known}, gated);
        if (answer.taken != nullptr) {
            return *answer.taken;
        }
        if (!answer.wait_for) {
            if (answer.driver_refused && !is_given_back) {
                give_back_all(device);
                is_given_back = true;
                continue;
            }
            if (quarantined::await_one(from)) {
                is_given_back = false;
                continue;
            }
            const std::string why = from.explain_shortage(bytes) + where_memory_is(device, &from) +
                                    (gated.empty() ? "" : " Pending memory is behind " + gate + ", which is closed.");
            from.source().expect_sound();
            if (std::erase_if(gated, is_complete) != 0) {
                continue;  // the gate was opened meanwhile
            }
            if (from.quarantine_ends() != answer.quarantine_ends) {
                continue;  // what was in quarantine has come back meanwhile
            }
            throw out_of_memory(why);
        }
        // The calling thread may be the one that is to open it: to wait here could be for ever.
        if (std::string found = runtime::closed_gate_before(*answer.wait_for); !found.empty()) {
            gate = std::move(found);
            gated.push_back(*answer.wait_for);
            continue;
        }
        // Not told to observers: the program did not ask for this wait and must not count on it.
        const runtime::watchdog::waits_in here(where, "memory that is free after");
        backend::timeline_table::instance().host_wait(*answer.wait_for);
        is_given_back = false;
        gated.clear();
    }
}

}  // namespace

detail::owner<block> allocate(std::size_t bytes, runtime::stream_state& on, const source_location& where) {
    return allocate(pool_of(on.device()), bytes, on, where);
}

namespace {

/// What was taken out of a pool, with an owner.
detail::owner<block> given_out(block& taken, const runtime::stream_state& on, const source_location& where) {
    detail::owner<block> made(&taken);
    runtime::observers::tell([&](runtime::observer& one) {
        one.allocated({made->id(), made->size(), on.info().device, reinterpret_cast<std::uintptr_t>(made->address),
                       &on.info(), where});
    });
    return made;
}

block* take_at_hand(pool& from, std::size_t bytes, const runtime::stream_state& on) {
    runtime::fork_guard::expect_usable();
    on.expect_open();
    return from.take_recent(bytes, on.timeline());
}

}  // namespace

detail::owner<block> allocate(pool& from, std::size_t bytes, runtime::stream_state& on, const source_location& where) {
    block* taken = take_at_hand(from, bytes, on);
    if (taken == nullptr) {
        taken = &take_slowly(from, bytes, on, where);
    }
    return given_out(*taken, on, where);
}

detail::owner<block> allocate_at_hand(pool& from, std::size_t bytes, runtime::stream_state& on,
                                      const source_location& where) {
    block* const taken = take_at_hand(from, bytes, on);
    return taken == nullptr ? detail::owner<block>() : given_out(*taken, on, where);
}

}  // namespace weir::memory
