#include "memory/device_memory.hpp"

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backend/capability/capabilities.hpp"
#include "backend/capability/shared_memory.hpp"
#include "backend/plain_host_memory.hpp"
#include "backend/timeline.hpp"
#include "memory/quarantine.hpp"
#include "observe/observers.hpp"
#include "runtime/diagnostics/standstill.hpp"
#include "runtime/diagnostics/watchdog.hpp"
#include "runtime/host/fork.hpp"
#include "runtime/lifetime/reaper.hpp"
#include "weir/detail/giving_back.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/error.hpp"

namespace weir::memory {

pool& make_pool_of(runtime::device_state& device) {
    // Pairs with the load in pool_of.
    auto made = std::make_unique<pool>(device.driver(), backend::timeline_table::instance(), &device);
    pool* known = nullptr;
    if (device.pool.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) {
        return *made.release();
    }
    return *known;  // another thread was faster
}

namespace {

/// The source of memory that the host and CUDA devices both reach: managed memory of a device, else pinned memory. If CUDA devices are
/// simulated, or there are none, it is plain host memory (rule L6).
std::unique_ptr<backend::memory_source> shared_memory_of(runtime::device_state& device) {
    if (backend::capability::shared_memory* const own = device.driver().can().shared_memory) {
        return own->make_managed(runtime::cpu_device().driver());
    }
    backend::driver& host = device.driver();
    if (runtime::device_state* const pins = runtime::pinning_device()) {
        return pins->driver().can().shared_memory->make_pinned(host);
    }
    return std::make_unique<backend::plain_host_memory>(std::string(host.name()) + " (pinned)", host, true);
}

}  // namespace

pool& shared_pool_of(runtime::device_state& device) {
    device.expect_usable();
    if (runtime::gpus_stayed_behind()) {
        static_cast<void>(runtime::cuda_device(0));  // throws state_error: the pool's memory is the parent's driver's
    }
    if (pool* const known = device.shared_pool.load(std::memory_order_acquire)) {
        return *known;
    }
    // Guards the making of pools; held while the driver is called, which allocates nothing there.
    static detail::mutex making;
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

/// Null: not made yet, or in the child of a fork, where the pool's memory belongs to the parent's driver.
std::array<pool*, 2> pools_of(const runtime::device_state& device) noexcept {
    return {device.pool.load(std::memory_order_acquire),
            runtime::gpus_stayed_behind() ? nullptr : device.shared_pool.load(std::memory_order_acquire)};
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

/// What a consumer has released comes back by way of the reaper, at most twice: the export, and then its memory from quarantine.
constexpr int most_drains = 3;

/// Waits until the reaper has handled what consumers have released: `drains` times at most. Returns whether it waited.
bool await_reaper(int& drains) noexcept {
    if (drains != 0 && runtime::reaper::held() != 0) {
        --drains;
        runtime::reaper::drain();
        return true;
    }
    return false;
}

block& take_slowly(pool& from, std::size_t bytes, runtime::device_state& device, runtime::stream_state& first,
                   const source_location& where) {
    device.driver().look_at_all();
    int drains = most_drains;
    bool is_given_back = false;           // whether give_back_all was called since the last wait
    std::vector<frontiers::point> gated;  // points of pending memory that are behind a closed gate
    std::string gate;
    for (;;) {
        const pool::answer answer = from.take(bytes, {first.timeline(), first.tail().known}, gated);
        if (answer.taken != nullptr) {
            return *answer.taken;
        }
        if (!answer.wait_for) {
            if (answer.driver_refused && !is_given_back) {
                give_back_all(device);
                is_given_back = true;
                continue;
            }
            if (quarantined::await_one(from, memory_owner::pool)) {
                is_given_back = false;
                continue;
            }
            if (await_reaper(drains)) {
                continue;
            }
            const std::string why = from.explain_shortage(bytes) + where_memory_is(device, &from) +
                                    (gated.empty() ? "" : " Pending memory is behind " + gate + ", which is closed.");
            from.source().expect_sound();
            if (std::erase_if(gated, is_complete) != 0) {
                continue;  // the gate has been opened meanwhile
            }
            if (from.quarantine_ends() != answer.quarantine_ends) {
                continue;  // memory has left quarantine meanwhile
            }
            throw out_of_memory(why);
        }
        // The calling thread may be the one that is to open the gate: then a wait here would never end.
        if (std::string found = runtime::closed_gate_before(*answer.wait_for); !found.empty()) {
            gate = std::move(found);
            gated.push_back(*answer.wait_for);
            continue;
        }
        // Observers do not see this wait: the program did not ask for it and must not rely on it.
        const runtime::watchdog::waits_in here(where, "memory that is free after");
        backend::timeline_table::instance().host_wait(*answer.wait_for);
        is_given_back = false;
        gated.clear();
    }
}

}  // namespace

void expect_room_for_import(runtime::device_state& device, std::size_t bytes) {
    pool& counts = pool_of(device);
    if (counts.has_room_for_others(bytes)) {
        return;
    }
    detail::give_back_released();
    int drains = most_drains;
    while (!counts.has_room_for_others(bytes)) {
        if (quarantined::await_one(counts, memory_owner::other) || await_reaper(drains)) {
            continue;
        }
        if (!counts.has_room_for_others(bytes)) {  // else memory has left quarantine meanwhile
            throw out_of_memory(counts.explain_refused_import(bytes));
        }
    }
}

namespace {

/// An owner of a block that was taken out of a pool; notifies observers of the allocation.
detail::owner<block> given_out(block& taken, const runtime::stream_state& on, const source_location& where) {
    detail::owner<block> made(&taken);
    observe::observers::notify([&](observe::observer& one) {
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

detail::owner<block> allocate(pool& from, std::size_t bytes, runtime::stream_state& on, runtime::stream_state& first,
                              const source_location& where) {
    if (&on != &first) {
        on.expect_open();  // take_at_hand checks `first`
    }
    block* taken = take_at_hand(from, bytes, first);
    if (taken == nullptr) {
        taken = &take_slowly(from, bytes, on.device(), first, where);
    }
    return given_out(*taken, on, where);
}

detail::owner<block> allocate_at_hand(pool& from, std::size_t bytes, runtime::stream_state& on,
                                      const source_location& where) {
    block* const taken = take_at_hand(from, bytes, on);
    return taken == nullptr ? detail::owner<block>() : given_out(*taken, on, where);
}

}  // namespace weir::memory
