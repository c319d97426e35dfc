#include "control.hpp"

#include "driver.hpp"
#include "module_table.hpp"

using namespace weir_fake;

namespace {

/// With the lock; null if there is none.
std::shared_ptr<stream> named(void* handle) {
    auto* const slot = static_cast<stream_slot*>(handle);
    if (reinterpret_cast<std::uintptr_t>(handle) <= 2) {
        // The default streams of the calling thread's context.
        context* const in = current_context();
        return in != nullptr ? default_stream(*in, reinterpret_cast<std::uintptr_t>(handle)) : nullptr;
    }
    return driver().streams.contains(slot) ? slot->is : nullptr;
}

int set_held(void* handle, bool held) {
    const std::lock_guard lock(driver().lock);
    if (handle == nullptr) {
        driver().all_held = held;
    } else if (const auto found = named(handle)) {
        found->held = held;
    } else {
        return 1;
    }
    wake_all();
    return 0;
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
        case weir_fake_contexts: {
            std::size_t count = 0;
            for (const context& each : driver().contexts) {
                count += each.references > 0 ? 1 : 0;
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

int weir_fake_hold(void* stream) { return set_held(stream, true); }
int weir_fake_open(void* stream) { return set_held(stream, false); }

std::size_t weir_fake_pending(void* stream) {
    const std::lock_guard held(driver().lock);
    const auto found = named(stream);
    return found ? static_cast<std::size_t>(found->submitted - found->completed) : 0;
}
