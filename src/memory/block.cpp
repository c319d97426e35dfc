#include "memory/block.hpp"

#include <utility>

#include "backend/cuda/driver_api.hpp"
#include "backend/timeline.hpp"
#include "memory/lent_memory.hpp"
#include "memory/pool.hpp"
#include "order/mark.hpp"
#include "runtime/device_state.hpp"
#include "runtime/fork.hpp"
#include "runtime/observer.hpp"

namespace weir::memory {

runtime::device_state& block::device() const noexcept { return lent == nullptr ? home->device() : lent->device(); }

backend::memory_source& block::source() const noexcept {
    return lent == nullptr ? home->source() : lent->device().driver();
}

void block::tell_released() const noexcept {
    if (!runtime::fork_guard::is_refused()) {
        runtime::observers::tell([&](runtime::observer& one) { one.released(id()); });
    }
}

void block::last_owner_gone() noexcept {
    if (runtime::fork_guard::is_refused() || device().stayed_behind() ||
        (quarantine && backend::cuda::is_driver_of_parent())) {
        // A thread that is gone may hold the locks, and a driver may be the parent's: better leak than hang (rule L3).
        return;
    }
    // Told before anybody else can be told that the memory is theirs.
    runtime::observers::tell([&](runtime::observer& one) { one.dropped(id()); });
    retire();
    if (notices) {
        drop_notice::tell(std::move(notices));
    }
    if (forgets_all_but) {
        // Room for one access was reserved when the memory was handed out.
        const order::mark tail = forgets_all_but->tail();
        history.clear();
        history.record({0, capacity}, order::access_mode::write, tail, backend::timeline_table::instance());
        forgets_all_but = {};
    }
    if (quarantine) {
        quarantine.release()->enter();  // its own from here on
    } else if (lent != nullptr) {
        lent->give_back();
    } else {
        home->put(*this);
    }
}

}  // namespace weir::memory
