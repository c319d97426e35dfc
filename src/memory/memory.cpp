#include "weir/memory.hpp"

#include "backend/backend.hpp"
#include "memory/device_memory.hpp"

namespace weir::memory {

statistics stats(device of, pool_kind which) {
    if (which == pool_kind::own) {
        return pool_of(of.state()).stats();
    }
    pool* const shared = of.state().shared_pool.load(std::memory_order_acquire);
    return shared == nullptr ? statistics() : shared->stats();
}

void limit(device of, std::size_t bytes) { pool_of(of.state()).set_limit(bytes); }

void trim(device of) {
    of.state().expect_usable();
    pool_of(of.state()).trim();
    if (pool* const shared = of.state().shared_pool.load(std::memory_order_acquire)) {
        shared->trim();
    }
    of.state().driver().trim();
}

}  // namespace weir::memory
