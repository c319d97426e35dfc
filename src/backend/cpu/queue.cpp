#include "backend/cpu/queue.hpp"

#include <new>
#include <utility>

namespace weir::backend::cpu {

void cpu_queue::reserve(std::size_t waits, const detail::task_ref& work) {
    const std::size_t size = work.type == nullptr ? 0 : work.type->size;
    records_.reserve(waits * record_ring::rounded(sizeof(wait_record)) + work_header + record_ring::rounded(size));
}

void cpu_queue::wait(point target) noexcept {
    ::new (records_.push(sizeof(wait_record))) wait_record{kind::wait, target};
}

void cpu_queue::submit(epoch at, const operation& what) noexcept {
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
    if (pending_.fetch_add(1, std::memory_order_acq_rel) == 0) {
        events_->busy();
        workers::instance().schedule(*this);
    }
}

void cpu_queue::execute(work_record& record) noexcept {
    const detail::task_type* const type = record.type;
    const epoch at = record.at;
    if (type != nullptr) {
        void* const object = reinterpret_cast<std::byte*>(&record) + work_header;
        const auto start = record.timed ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
        try {
            type->run(object);
        } catch (...) {
            events_->failed(at, record.from(), std::current_exception());
        }
        if (record.timed) {
            events_->executed(at, start, std::chrono::steady_clock::now());
        }
        type->destroy(object);
        records_.pop(work_header + type->size);
    } else {
        records_.pop(work_header);
    }
    ++ran_;
    line_->complete(at);
}

bool cpu_queue::rest() noexcept {
    queue_events* const events = events_;
    const std::int64_t ran = std::exchange(ran_, 0);
    if (pending_.fetch_sub(ran, std::memory_order_acq_rel) > ran) {
        return false;
    }
    events->idle();
    return true;
}

void cpu_queue::run() noexcept {
    for (int left = turn;;) {
        void* const front = records_.front();
        if (front == nullptr) {
            if (!workers::instance().linger(*this) && rest()) {
                return;
            }
            continue;
        }
        if (*static_cast<kind*>(front) == kind::wait) {
            const point target = static_cast<wait_record*>(front)->target;
            records_.pop(sizeof(wait_record));
            timeline& other = timeline_table::instance().at(target.timeline);
            if (other.completed() < target.at && other.wait(*this, target.at)) {
                return;  // from here on another thread may have the queue
            }
            continue;
        }
        auto& record = *static_cast<work_record*>(front);
        workers::offer();
        if (record.work == runtime::work_kind::host_task && workers::instance().schedule_blocking(*this)) {
            return;
        }
        execute(record);
        if (--left == 0) {
            workers::instance().schedule(*this);
            workers::offer();
            return;
        }
    }
}

void cpu_queue::run_blocking() noexcept {
    execute(*static_cast<work_record*>(records_.front()));
    workers::instance().schedule(*this);
}

}  // namespace weir::backend::cpu
