#pragma once

#include <atomic>
#include <cstdint>

#include "backend/recorded_queue.hpp"
#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "weir/detail/task.hpp"

namespace weir::backend::cpu {

/// A stream of a device without queues: operations run at enqueue, on the thread that enqueues them (rule S8).
///
/// If several threads enqueue at once, one runs the operations of all, and the others wait for their own. What an
/// operation itself enqueues runs after it, on the same thread, in the order in which it was enqueued. If the wait of a
/// thread is ended from within (detail::interruptible), another thread runs what is left.
class inline_queue final : public recorded_queue {
public:
    inline_queue(timeline& line, queue_events& events) : recorded_queue(line, events) {}
    ~inline_queue() override = default;

    void reserve(std::size_t waits, const detail::task_ref& work) override;
    void flush(point upto) noexcept override;

private:
    friend class inline_thread;

    /// No thread runs the queue yet: the next thread that flushes does.
    void schedule() noexcept override { unclaimed_.store(true, std::memory_order_release); }
    enum class outcome : std::uint8_t {
        ran,    ///< one operation
        rests,  ///< there was none, and the queue may be destroyed
        ended,  ///< a wait was ended
    };

    /// Runs one operation, if any is left, once the waits before it are over.
    [[nodiscard]] outcome run_one() noexcept;
    [[nodiscard]] outcome run_one_or_rest() noexcept;

    std::atomic<bool> unclaimed_{false};
    /// The inline_thread that runs the queue; a thread can rely only on finding itself.
    std::atomic<const void*> runner_{nullptr};
};

}  // namespace weir::backend::cpu
