#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/backend.hpp"
#include "frontier/point.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/native_queue.hpp"

namespace weir::runtime {

/// The device's side of an adopted stream: passes what Weir enqueues on to a queue that other code owns and uses as well.
///
/// Foreign code runs under no lock of a stream. So `wait` and `submit` only store the operation, and `flush` passes it on. When a
/// thread calls `flush` after its own `submit`, its operation is in the native queue when `flush` returns, before anything that
/// the thread puts there next: this makes entries and exits *eager* (rules O2, O7).
///
/// Each operation completes its own epoch when the native queue reaches it. So a wait for an epoch never covers anything later,
/// gate or not, and no `order::gate_log` is needed. A backend that is built on driver events records one event for each entry and
/// for each operation at once, and keeps the log for the streams that it owns itself.
class adopted_queue final : public backend::queue {
public:
    /// `native` must live until everything submitted is complete; `line` and `events` as driver::make_queue says.
    adopted_queue(native_queue& native, frontiers::timeline_id line, backend::queue_events& events) noexcept;
    ~adopted_queue() override;

    void reserve(std::size_t waits, const detail::task_ref& work) override;
    void wait(backend::point target) noexcept override;
    void submit(backend::epoch at, const backend::operation& what) noexcept override;

    /// If the native queue refuses an operation, that operation fails, and all operations before it are complete when this returns. If
    /// it refuses a wait, the wait's targets are complete when this returns. If the body of an operation calls `flush` meanwhile, it does
    /// not wait, because it may be what the waiting thread waits for: the waiting thread passes on what the body has enqueued.
    void flush(backend::point upto) noexcept override;

private:
    class pause;
    class item;

    using passing_lock = std::unique_lock<detail::mutex>;
    void pass_on(std::unique_ptr<item> one, passing_lock& passing_on) noexcept;
    void give_up(std::unique_ptr<item> one, std::exception_ptr why, passing_lock& passing_on) noexcept;
    /// One operation is complete. `this` may be destroyed when this returns.
    void account() noexcept;

    native_queue* native_;
    frontiers::timeline_id line_;
    backend::queue_events* events_;
    std::unique_ptr<item> reserved_;  ///< guarded by the stream's lock

    detail::mutex list_mutex_;  ///< guards what follows; a leaf in the lock order
    std::unique_ptr<item> first_;
    item* last_ = nullptr;

    /// Held while operations enter the native queue, so that they do so in the order of their epochs; guards `is_waiting_`. A thread
    /// that holds another lock must not take it.
    detail::mutex passing_on_;
    /// A thread waits in place of the native queue, and passes on what is submitted meanwhile.
    bool is_waiting_ = false;
    detail::condition_variable waited_;
    /// Number of operations that are submitted and not complete.
    std::atomic<std::size_t> pending_{0};
};

}  // namespace weir::runtime
