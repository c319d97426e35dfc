#include "weir/stats.hpp"

#include <atomic>

#include "backend/event_counts.hpp"

namespace weir {

ordering_statistics stats() noexcept {
    using backend::event_counts;
    return {event_counts::late_waits.load(std::memory_order_relaxed),
            event_counts::made.load(std::memory_order_relaxed)};
}

}  // namespace weir
