#include "control.hpp"

#include <algorithm>

#include "driver.hpp"
#include "module_table.hpp"

using namespace weir_fake;

namespace {

/// The stream that the handle names. With the lock; null if there is none.
std::shared_ptr<stream> named(void* handle) {
    auto* const slot = static_cast<stream_slot*>(handle);
    if (reinterpret_cast<std::uintptr_t>(handle) <= 2) {
        // The default streams of the calling thread's context.
        context* const in = current_context();
        return in != nullptr ? default_stream(*in, reinterpret_cast<std::uintptr_t>(handle)) : nullptr;
    }
    return driver().streams.contains(slot) ? slot->is : nullptr;
}

/// Calls `what` for each stream. With the lock.
template <class Function>
void for_each_stream(Function what) {
    for (context& each : driver().contexts) {
        what(*each.legacy);
        for (const auto& one : each.streams) {
            what(*one);
        }
    }
}

}  // namespace

std::size_t weir_fake_live(int thing) {
    const std::lock_guard held(driver().lock);
    switch (thing) {
        case weir_fake_streams:
            return driver().streams.live();
        case weir_fake_events:
            return driver().events.live();
        case weir_fake_modules:
            return live_modules();
        case weir_fake_address_ranges:
            return driver().reserved.size();
        case weir_fake_created_memory:
            return driver().created.size();
        case weir_fake_contexts: {
            std::size_t count = 0;
            for (const context& each : driver().contexts) {
                count += each.references > 0 ? 1 : 0;
            }
            return count;
        }
        case weir_fake_streams_with_destroyed: {
            std::size_t count = 0;
            for (const context& each : driver().contexts) {
                count += each.streams.size();
            }
            return count;
        }
        default:
            break;
    }
    std::size_t pinned = 0;
    for (const auto& [address, each] : driver().memory) {
        pinned += each.kind == memory_kind::pinned ? 1 : 0;
    }
    return thing == weir_fake_pinned_allocations ? pinned : driver().memory.size() - pinned;
}

std::size_t weir_fake_bytes_in_use(int device) {
    const std::lock_guard held(driver().lock);
    const context& of = driver().contexts.at(static_cast<std::size_t>(device));
    return of.used + of.memory_pool.reserved;
}

void weir_fake_set_total_memory(std::size_t bytes) {
    const std::lock_guard held(driver().lock);
    driver().total_memory = bytes;
}

void weir_fake_loading_waits(int whether) {
    const std::lock_guard held(driver().lock);
    driver().loading_waits = whether != 0;
}

std::size_t weir_fake_waiting_loads() {
    const std::lock_guard held(driver().lock);
    return driver().waiting_loads;
}

void weir_fake_last_special_launch(unsigned* four) {
    const std::lock_guard held(driver().lock);
    std::copy(driver().last_special_launch.begin(), driver().last_special_launch.end(), four);
}

unsigned long long weir_fake_hold(void* handle) {
    const std::lock_guard held(driver().lock);
    const auto found = named(handle);
    if (found == nullptr) {
        return 0;
    }
    found->held = true;
    return found->id;
}

void weir_fake_open(unsigned long long id) {
    const std::lock_guard held(driver().lock);
    for_each_stream([id](stream& each) { each.held = each.held && each.id != id; });
    wake_all();
}

void weir_fake_hold_all() {
    const std::lock_guard held(driver().lock);
    driver().all_held = true;
}

void weir_fake_open_all() {
    const std::lock_guard held(driver().lock);
    driver().all_held = false;
    for_each_stream([](stream& each) { each.held = false; });
    wake_all();
}

std::size_t weir_fake_pending(void* stream) {
    const std::lock_guard held(driver().lock);
    const auto found = named(stream);
    return found ? static_cast<std::size_t>(found->submitted - found->progress->completed) : 0;
}

void weir_fake_settle(void* handle) {
    std::unique_lock held(driver().lock);
    const auto of = named(handle);
    while (of && !is_settled(*of)) {
        of->progress->changed.wait(held);
    }
}

int weir_fake_enqueue(void* stream, int (*work)(void*), void* with) {
    std::unique_lock held(driver().lock);
    context* const in = current_context();
    const auto found = in != nullptr ? named(stream) : nullptr;
    if (found == nullptr || found->in != in) {
        return found == nullptr ? invalid_handle : invalid_context;
    }
    if (driver().error != success) {
        return driver().error;
    }
    enqueue(held, found, {{}, [work, with] { return work(with); }});
    return success;
}
