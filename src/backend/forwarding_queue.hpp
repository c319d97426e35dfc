#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "backend/recorded_queue.hpp"
#include "backend/task_threads.hpp"
#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "weir/detail/operation.hpp"
#include "weir/detail/task.hpp"

namespace weir::backend {

/// The submission queue of rule O9, in front of a queue whose device cannot wait for the work of every other device.
///
/// As long as nothing needs it, everything goes to the device's queue at once. From the first incomplete wait on that the
/// device cannot carry out itself, what is submitted is held back here, in order, and the caller goes on. Once the wait is over, a
/// thread of Weir's passes on what follows, up to the next such wait; when nothing is left, submissions go to the device at once again.
///
///     submit --> nothing held, no foreign wait? --yes--> the device's queue
///                        |no                                ^
///                        +--> held --> foreign wait over ---+   (on a thread that may block)
///
/// An operation that cannot be passed on fails, and completes once everything before it is complete: no epoch is lost.
class forwarding_queue final : public recorded_queue, private blocking_work, private waiter {
public:
    /// `of` reports what its queue `to` can wait for. All three complete epochs of `line` only. Throws std::bad_alloc,
    /// device_error.
    forwarding_queue(const driver& of, std::unique_ptr<queue> to, timeline& line, queue_events& events);
    ~forwarding_queue() override = default;

    void reserve(std::size_t waits, const detail::task_ref& work) override;
    void wait(point target) noexcept override { targets_.push_back(target); }
    void submit(epoch at, const operation& what) noexcept override;
    void flush(point upto) noexcept override { to_->flush(upto); }

private:
    [[nodiscard]] bool can_wait_for(point target) const noexcept;
    [[nodiscard]] bool pass(point target) noexcept;
    [[nodiscard]] bool pass_work_on() noexcept;
    void schedule() noexcept override { task_threads::instance().schedule_surely(*this); }
    void reached() noexcept override { schedule(); }
    void run_blocking() noexcept override;

    const driver* of_;
    std::unique_ptr<queue> to_;
    // Owned by the submitting thread.
    std::vector<point> targets_;  ///< what the next operation waits for
    bool fast_path_ = true;       ///< nothing was held when room was made for the next operation
    // Owned by the thread that passes on.
    std::exception_ptr failure_;  ///< why the next operation cannot be passed on
};

}  // namespace weir::backend
