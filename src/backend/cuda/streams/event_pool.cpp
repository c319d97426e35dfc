#include "backend/cuda/streams/event_pool.hpp"

#include <memory>

#include "backend/event_counts.hpp"

namespace weir::backend::cuda {

event_pool::~event_pool() {
    for (const pooled_event* one : all_) {
        delete one;  // NOLINT(cppcoreguidelines-owning-memory): the driver destroys its events with the context
    }
}

event_ref event_pool::take() {
    {
        const std::lock_guard lock(mutex_);
        if (pooled_event* const one = free_; one != nullptr) {
            free_ = one->next;
            return event_ref(*one);
        }
    }
    auto fresh = std::make_unique<pooled_event>();
    fresh->pool = this;
    {
        const in_relaxed_context here(*of_);
        of_->expect(here.entered(), "cuCtxSetCurrent");
        of_->expect(of_->api().event_create(&fresh->handle, flags_), "cuEventCreate");
    }
    event_counts::made.fetch_add(1, std::memory_order_relaxed);
    try {
        const std::lock_guard lock(mutex_);
        all_.push_back(fresh.get());
    } catch (...) {
        of_->api().event_destroy(fresh->handle);
        throw;
    }
    return event_ref(*fresh.release());
}

void event_pool::put(pooled_event& one) noexcept {
    const std::lock_guard lock(mutex_);
    one.next = free_;
    free_ = &one;
}

std::size_t event_pool::size() const {
    const std::lock_guard lock(mutex_);
    return all_.size();
}

}  // namespace weir::backend::cuda
