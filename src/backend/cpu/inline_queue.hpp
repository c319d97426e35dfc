#pragma once

#include <atomic>

#include "backend/recorded_queue.hpp"
#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "weir/detail/task.hpp"

namespace weir::backend::cpu {

/// A stream of a device without queues: operations run at enqueue, on the thread that enqueues them (rule S8).
///
/// Of several threads that enqueue at once, one runs the operations of all, and the others wait for their own. What an
/// operation itself enqueues runs after it, on the same thread, in the order in which it was enqueued.
class inline_queue final : public recorded_queue {
public:
    inline_queue(timeline& line, queue_events& events) : recorded_queue(line, events) {}
    ~inline_queue() override = default;

    void reserve(std::size_t waits, const detail::task_ref& work) override;
    void flush(point upto) noexcept override;

private:
    friend class inline_thread;

    /// Nobody runs it yet: the next to flush does.
    void schedule() noexcept override { unclaimed_.store(true, std::memory_order_release); }
    void run_until(epoch upto) noexcept;
    /// Runs one operation, if there is any left; else rests. Whether it is done with.
    [[nodiscard]] bool run_one_or_rest() noexcept;
    [[nodiscard]] bool look_and_wait() noexcept;

    std::atomic<bool> unclaimed_{false};
    std::atomic<const void*> runner_{nullptr};  ///< the inline_thread that runs it; each sees only itself for sure
};

}  // namespace weir::backend::cpu
