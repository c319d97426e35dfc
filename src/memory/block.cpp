#include "memory/block.hpp"

#include <mutex>
#include <utility>
#include <vector>

#include "backend/timeline.hpp"
#include "memory/lent_memory.hpp"
#include "memory/pool.hpp"
#include "observe/observers.hpp"
#include "order/mark.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/host/fork.hpp"
#include "runtime/lifetime/package_ties.hpp"
#include "runtime/submission/verify_access.hpp"
#include "weir/access.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/detail/passkey.hpp"

namespace weir::memory {

namespace {

/// Every resource but a token is a block.
runtime::verify_access::place place_of(const runtime::resource& of) noexcept {
    const auto& memory = static_cast<const block&>(of);
    const bool is_the_hosts = memory.source().host_reaches_memory();
    return {memory.address, is_the_hosts ? memory.address + memory.to_host : nullptr};
}

const bool is_known_to_the_verifier = (runtime::verify_access::find_memory_by(place_of), true);

}  // namespace

runtime::device_state& block::device() const noexcept { return lent == nullptr ? home->device() : lent->device(); }

backend::memory_source& block::source() const noexcept {
    return lent == nullptr ? home->source() : lent->device().driver();
}

void block::tell_released() const noexcept {
    if (!runtime::fork_guard::is_refused()) {
        observe::observers::notify([&](observe::observer& one) { one.released(id()); });
    }
}

void block::last_owner_gone() noexcept {
    if (runtime::fork_guard::is_refused() || device().stayed_behind() ||
        (quarantine && runtime::gpus_stayed_behind())) {
        // A thread that is gone may hold the locks, and a driver may be the parent's: a leak is better than a hang (rule L3).
        return;
    }
    // Work enqueued on memory that is lent out could come before the consumer's: it is on streams that Weir does not know (rule L5).
    if (notices && !notices->memory_was_shown && !quarantine) {
        // A buffer that owns the block once more. When it ends, this function runs again.
        const buffer again{detail::key, detail::owner<block>(this)};
        drop_notice::show(*notices, again);
        return;
    }
    // Reported before the memory can get a new owner, so that observers see the drop before that owner's allocation.
    observe::observers::notify([&](observe::observer& one) { one.dropped(id()); });
    retire();
    if (has_others()) {
        std::vector<runtime::package_tie> shared;  // released after the lock
        const std::lock_guard lock(mutex);
        shared = untie_all();
    }
    if (notices) {
        drop_notice::tell(std::move(notices));
    }
    if (forgets_all_but) {
        // `allocating_stream` has reserved room for one access when it handed the memory out.
        const order::mark tail = forgets_all_but->tail();
        history.clear();
        history.record({0, capacity}, order::access_mode::write, tail, backend::timeline_table::instance());
        forgets_all_but = {};
    }
    if (quarantine) {
        quarantine.release()->enter();  // it owns itself from here on
    } else if (lent != nullptr) {
        lent->give_back();
    } else {
        home->put(*this);
    }
}

}  // namespace weir::memory
