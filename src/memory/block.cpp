#include "memory/block.hpp"

#include "memory/pool.hpp"
#include "runtime/fork.hpp"
#include "runtime/observer.hpp"

namespace weir::memory {

void block::last_owner_gone() noexcept {
    if (runtime::fork_guard::forked()) {
        return;  // a thread that is gone may hold the locks: better leak than hang (rule L3)
    }
    // Told before anybody else can be told that the memory is theirs.
    runtime::observers::tell([&](runtime::observer& one) { one.dropped(id()); });
    if (forgets_all_but) {
        // Room for one access was reserved when the memory was handed out.
        const order::mark tail = forgets_all_but->tail();
        history.clear();
        history.record({0, capacity}, order::access_mode::write, tail, home->completed());
        forgets_all_but = {};
    }
    home->put(*this);
}

}  // namespace weir::memory
