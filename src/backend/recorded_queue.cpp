#include "backend/recorded_queue.hpp"

#include <new>

#include "weir/source_location.hpp"

namespace weir::backend {

void recorded_queue::reserve(std::size_t waits, const detail::task_ref& work) {
    const std::size_t size = work.type == nullptr ? 0 : work.type->size;
    records_.reserve(waits * record_ring::rounded(sizeof(wait_record)) + work_header + record_ring::rounded(size));
}

void recorded_queue::wait(point target) noexcept {
    ::new (records_.push(sizeof(wait_record))) wait_record{kind::wait, target};
}

void recorded_queue::submit(epoch at, const operation& what) noexcept {
    const detail::task_type* const type = what.work.type;
    const std::size_t size = type == nullptr ? 0 : type->size;
    void* const place = records_.push(work_header + size);
    const source_location& where = what.from.where;
    ::new (place) work_record{kind::work, what.kind,      what.timed, where.line, what.from.label,
                              where.file, where.function, at,         type};
    if (type != nullptr) {
        type->move(what.work.object, static_cast<std::byte*>(place) + work_header);
    }
    records_.commit();
    if (pending_.value.fetch_add(1, std::memory_order_acq_rel) == 0) {
        events_->busy();
        schedule();
    }
}

recorded_queue::ahead recorded_queue::look(waiter& self) noexcept {
    return look_past([&](point target) {
        timeline& other = timeline_table::instance().at(target.timeline);
        return other.completed() >= target.at || !other.wait(self, target.at);
    });
}

[[gnu::hot]] bool recorded_queue::rest() noexcept {
    queue_events* const events = events_;
    const std::int64_t ran = std::exchange(ran_, 0);
    if (pending_.value.fetch_sub(ran, std::memory_order_acq_rel) > ran) {
        return false;
    }
    events->idle();
    return true;
}

}  // namespace weir::backend
