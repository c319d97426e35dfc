#include "weir/memory.hpp"

#include "backend/backend.hpp"
#include "memory/device_memory.hpp"
#include "weir/detail/passkey.hpp"

namespace weir::memory {

statistics stats(device of, pool_kind which) {
    if (which == pool_kind::own) {
        return pool_of(of.state(detail::key)).stats();
    }
    pool* const shared = of.state(detail::key).shared_pool.load(std::memory_order_acquire);
    return shared == nullptr ? statistics() : shared->stats();
}

void limit(device of, std::size_t bytes) { pool_of(of.state(detail::key)).set_limit(bytes); }

void trim(device of) {
    of.state(detail::key).expect_usable();
    pool_of(of.state(detail::key)).trim();
    if (pool* const shared = of.state(detail::key).shared_pool.load(std::memory_order_acquire)) {
        shared->trim();
    }
    of.state(detail::key).driver().trim();
}

}  // namespace weir::memory
