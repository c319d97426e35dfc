#pragma once

#include <chrono>

#include "backend/cpu/workers.hpp"
#include "backend/recorded_queue.hpp"
#include "backend/task_threads.hpp"
#include "backend/timeline.hpp"

namespace weir::backend::cpu {

/// A stream of the CPU: a queue whose operations workers run, one at a time, in order.
class cpu_queue final : public recorded_queue, private runnable, private blocking_work, private waiter {
public:
    cpu_queue(timeline& line, queue_events& events) : recorded_queue(line, events) {}
    ~cpu_queue() override = default;

private:
    /// How many operations a worker runs before other queues have a turn.
    static constexpr int turn = 256;
    /// A worker that has run all operations it saw looks for more no sooner than this time after its last look, ...
    static constexpr std::chrono::nanoseconds pause{4000};
    /// ... unless such a pause brought fewer operations than this: then most_looks_at_once looks follow without a pause.
    static constexpr int worth_a_pause = 4;
    static constexpr int most_looks_at_once = 16;

    void schedule() noexcept override { workers::instance().schedule(*this); }
    void run() noexcept override;
    void run_blocking() noexcept override;
    [[nodiscard]] bool has_work() noexcept override { return has_records(); }
    void reached() noexcept override { schedule(); }
    /// All operations that a worker saw have run. Whether there are more, perhaps after a pause of some microseconds.
    [[nodiscard]] bool find_more() noexcept;

    // Owned by the worker that runs the queue.
    std::chrono::steady_clock::time_point looked_at_;
    bool has_paused_ = false;  ///< before the last look
    int brought_ = 0;          ///< operations that ran since the last look
    int looks_at_once_ = 0;    ///< looks left without a pause
};

}  // namespace weir::backend::cpu
