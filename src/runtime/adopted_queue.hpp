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

/// The device's side of an adopted stream: hands what Weir enqueues on to a queue that others own and use as well.
///
/// Foreign code runs under no lock of a stream, so `wait` and `submit` only note what is to go there, and `flush` passes
/// it on. Whoever calls `flush` after its own `submit` knows, when it returns, that its operation is in the native queue,
/// before whatever the calling thread puts there next: this is what makes entries and exits *eager* (rules O2, O7).
///
/// Each operation completes its own epoch when the native queue gets there, so a wait for an epoch never covers anything
/// later, gate or not, and no `order::gate_log` is needed. A backend that stands on driver events records one for each
/// entry and for each operation here at once, and keeps the log for the streams that it owns itself.
class adopted_queue final : public backend::queue {
public:
    /// `native` must stay until everything submitted is over; `line` and `events` as driver::make_queue says.
    adopted_queue(native_queue& native, frontiers::timeline_id line, backend::queue_events& events) noexcept;
    ~adopted_queue() override;

    void reserve(std::size_t waits, const detail::task_ref& work) override;
    void wait(backend::point target) noexcept override;
    void submit(backend::epoch at, const backend::operation& what) noexcept override;

    /// If the native queue refuses an operation, it fails, and all before it is over when this returns. If it refuses a
    /// wait, what is to be waited for is over when this returns. A body of an operation that comes here meanwhile does not
    /// wait, since it may be what is waited for: whoever waits passes on what the body has enqueued.
    void flush(backend::point upto) noexcept override;

private:
    class pause;
    class item;

    using passing_lock = std::unique_lock<detail::mutex>;
    void pass_on(std::unique_ptr<item> one, passing_lock& passing_on) noexcept;
    void give_up(std::unique_ptr<item> one, std::exception_ptr why, passing_lock& passing_on) noexcept;
    /// One operation is over. `this` may be gone then.
    void account() noexcept;

    native_queue* native_;
    frontiers::timeline_id line_;
    backend::queue_events* events_;
    std::unique_ptr<item> reserved_;  ///< guarded by the stream's lock

    detail::mutex list_mutex_;  ///< guards what follows; a leaf in the lock order
    std::unique_ptr<item> first_;
    item* last_ = nullptr;

    /// Held while operations enter the native queue, so that they do so in the order of their epochs; guards `is_waiting_`.
    /// Nobody who holds another lock takes it.
    detail::mutex passing_on_;
    bool is_waiting_ = false;  ///< somebody waits in place of the native queue, and passes on what comes afterwards
    detail::condition_variable waited_;
    /// Operations submitted and not over.
    std::atomic<std::size_t> pending_{0};
};

}  // namespace weir::runtime
