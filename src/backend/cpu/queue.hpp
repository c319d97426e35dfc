#pragma once

#include "backend/cpu/workers.hpp"
#include "backend/recorded_queue.hpp"
#include "backend/task_threads.hpp"
#include "backend/timeline.hpp"

namespace weir::backend::cpu {

/// A stream of the CPU: a queue that workers work off, one operation at a time, in order.
class cpu_queue final : public recorded_queue, private runnable, private blocking_work, private waiter {
public:
    cpu_queue(timeline& line, queue_events& events) : recorded_queue(line, events) {}
    ~cpu_queue() override = default;

private:
    /// How many operations a worker runs before it lets others have a turn.
    static constexpr int turn = 256;

    void schedule() noexcept override { workers::instance().schedule(*this); }
    void run() noexcept override;
    void run_blocking() noexcept override;
    [[nodiscard]] bool has_work() noexcept override { return has_records(); }
    void reached() noexcept override { schedule(); }
};

}  // namespace weir::backend::cpu
