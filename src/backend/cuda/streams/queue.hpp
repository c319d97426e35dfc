#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "backend/cuda/api/driver_api.hpp"
#include "backend/cuda/kernels/host_bodies.hpp"
#include "backend/cuda/streams/driver_stream.hpp"
#include "backend/cuda/streams/event_pool.hpp"
#include "backend/cuda/streams/submission_queues.hpp"
#include "backend/recorded_queue.hpp"
#include "backend/task_threads.hpp"
#include "frontier/point.hpp"

namespace weir::backend::cuda {

/// Operations that are enqueued and not in the driver's stream yet. Usually the enqueuing thread passes each one on at once
/// (`flush`). What the driver cannot see (a wait for another backend's work, a gate, a host task) holds back what is behind
/// it here (rule O9), and a thread of Weir's passes that on later:
///
///     submit --> records --flush--> waits, work --> the driver's stream
///                          |  incomplete, and no event covers it: held back until it is complete
///                          |  a host task: runs here once all before it is complete
///
/// Where nothing is held back, and all that an operation waits for is in driver streams, it takes the fast path (`claim`,
/// `carry_out`).
///
/// Nothing that waits for the host is ever in the driver's stream, so that an event recorded there late waits for nothing
/// that might never come (rule O7). The exception is foreign work (task_nature::foreign), which has an event before and behind it.
class submission_queue final : public fast_path,
                               public recorded_queue,
                               public std::enable_shared_from_this<submission_queue>,
                               private queue_events,
                               private blocking_work,
                               private waiter {
public:
    /// `bodies` runs host code in place of device work, in tests; else null. Throws device_error, std::bad_alloc.
    submission_queue(device_context& in, timeline& line, queue_events& owner, int priority, unsigned flags,
                     host_bodies* bodies);
    /// The same into a stream that the program or a library owns. Throws std::bad_alloc, device_error.
    submission_queue(device_context& in, timeline& line, queue_events& owner, stream_handle adopted,
                     host_bodies* bodies);
    ~submission_queue() override = default;

    [[nodiscard]] const detail::owner<driver_stream>& of() const noexcept { return driver_stream_; }
    void reserve(std::size_t waits, const detail::task_ref& work) override;
    void wait(point target) noexcept override { targets_.push_back(target); }
    void submit(epoch at, const operation& what) noexcept override;
    void flush(point upto) noexcept override;
    bool claim(epoch at, const operation& what, std::span<const order::wait> waits) noexcept override;
    void carry_out(epoch at, const operation& what) noexcept override;
    /// Blocks until the driver has everything up to `upto`. Returns false if it does not: the thread's waiting was ended, or the thread
    /// runs code of a stream, which may be what `upto` waits for.
    [[nodiscard]] bool await_passed_on(point upto) noexcept {
        flush(upto);
        await_others(upto);
        return driver_stream_->passed_on() >= upto.at;
    }
    void share() noexcept override;
    void await_shared(point upto) noexcept override;
    /// Whether other code may put work into the stream.
    [[nodiscard]] bool is_shared() const noexcept { return is_shared_.load(std::memory_order_acquire); }

private:
    void make_ready();
    void await_others(point upto) noexcept;
    void schedule() noexcept override { unclaimed_.store(true, std::memory_order_release); }
    void reached() noexcept override { task_threads::instance().schedule_surely(*this); }
    void run_blocking() noexcept override;

    void pass_on(bool may_block) noexcept;
    [[nodiscard]] bool pass(point target) noexcept;
    [[nodiscard]] std::shared_ptr<submission_queue> ordered_behind(point target) const noexcept;
    [[nodiscard]] bool await_entry(const submission_queue& theirs, epoch at) const noexcept;
    [[nodiscard]] bool find_event(point target, event_ref& event);
    [[nodiscard]] bool may_block_for(point target) noexcept;
    [[nodiscard]] bool hold_until(timeline& line, epoch at) noexcept;
    [[nodiscard]] bool can_be_left_to_others() const noexcept;
    [[nodiscard]] bool is_left_to_others() const noexcept;
    [[nodiscard]] bool has_work_of_others() const noexcept;
    void await_work_of_others() const noexcept;
    [[nodiscard]] bool pass_work_on(bool may_block) noexcept;
    [[nodiscard]] bool is_for_the_host(runtime::work_kind what, const detail::task_type* type) const noexcept;
    void run_ahead() noexcept;
    void submit_ahead() noexcept;
    struct fast_wait;
    [[nodiscard]] bool wait_fast(fast_wait& one) noexcept;
    void wait_here(const fast_wait& one) noexcept;
    void wait_for_claimed(bool is_plain) noexcept;
    [[nodiscard]] bool is_plain(const operation& what) const noexcept;
    void record_and_wait() noexcept;
    [[nodiscard]] bool claim_with_one(epoch at, std::span<const order::wait> waits) noexcept;
    [[nodiscard]] bool claim_with_wait(submission_queues::place& locked, epoch at, point target) noexcept;
    [[nodiscard]] bool claim_with_waits(epoch at, std::span<const order::wait> waits) noexcept;
    [[nodiscard]] bool claim_if_free(epoch at, std::span<const order::wait> waits) noexcept;
    [[nodiscard]] bool claim_for_code(epoch at, const operation& what, std::span<const order::wait> waits) noexcept;
    void claim_plainly(epoch at) noexcept;
    [[nodiscard]] bool cancel_waits() noexcept;
    void remember_passed(point target) noexcept;
    void carry_out_in_context(epoch at, const operation& what) noexcept;
    void put_plainly(epoch at, const operation& what) noexcept;
    void enters_plainly(epoch at) noexcept;
    /// What an operation put into the driver's stream. `call`: work that certainly includes a driver call.
    enum class entered : std::uint8_t { nothing, work, call, foreign_work };
    [[nodiscard]] entered enter_stream(epoch at, const operation& what) noexcept;
    void has_entered(epoch at, entered what) noexcept;
    [[nodiscard]] bool is_body(const operation& what) const noexcept;
    void put_body(epoch at, const runtime::site& from, const detail::task_type* type, void* object);
    void put_into_stream(epoch at, const operation& what);
    void begin_times(driver_stream::times& its_times) noexcept;
    void end_times(driver_stream::times&& its_times);
    void set_times_after(driver_stream::times& its_times) const;
    void keep_order(epoch at) noexcept;

    // Events of the records, forwarded to the owner of the driver stream.
    void failed(epoch at, const runtime::site& from, std::exception_ptr why) noexcept override {
        driver_stream_->owner().failed(at, from, std::move(why));
    }
    void lost(epoch first, epoch last, std::exception_ptr why) noexcept override {
        driver_stream_->owner().lost(first, last, std::move(why));
    }
    void executed(epoch at, std::chrono::steady_clock::time_point start,
                  std::chrono::steady_clock::time_point end) noexcept override {
        driver_stream_->owner().executed(at, start, end);
    }
    bool comes_after(point target, point what) noexcept override {
        return driver_stream_->owner().comes_after(target, what);
    }
    void busy() noexcept override {}  // the driver stream counts these
    void idle() noexcept override {}
    bool examine(epoch at) noexcept override { return driver_stream_->owner().may_run(at); }
    void heal(epoch at) noexcept override { driver_stream_->owner().succeeded(at); }

    // Members that each operation needs, on one cache line.
    alignas(64) detail::owner<driver_stream> driver_stream_;
    host_bodies* bodies_;
    /// Targets that the driver waits for before the operation ahead; owned by the thread that passes on.
    std::vector<point> passed_;
    timeline_id number_;                  ///< number of the timeline
    std::atomic<bool> is_shared_{false};  ///< other code puts work into the stream, too
    /// Only Weir puts work into the stream, and the driver does not order it with other streams.
    std::atomic<bool> has_fast_path_;
    std::atomic<bool> unclaimed_{false};  ///< there are records and no thread passes them on
    std::atomic<bool> held_{false};  ///< the operation ahead is host code, or waits for what is in no driver stream
    /// A claim failed, which may have left `former` owners in `fast_path_`; owned by the same thread as that.
    bool was_cancelled_ = false;
    bool host_waits_ = false;      ///< the operation ahead waits on the host; owned by the thread that passes on
    std::uint8_t fast_waits_ = 0;  ///< number of waits claimed, or one_to_record; owned by the thread that passes on

    /// A wait that `carry_out` puts into the stream.
    struct fast_wait {
        point target;
        driver_stream::awaited_end end;
    };
    static constexpr std::size_t most_fast_waits = 8;
    /// There is one wait, and an event to be recorded for it in the stream `end.of`, which is not adopted.
    static constexpr std::uint8_t one_to_record = most_fast_waits + 1;
    std::array<fast_wait, most_fast_waits> fast_path_;  ///< owned by the thread that passes on
    std::vector<point> targets_;  ///< what the next operation waits for; owned by the submitting thread
};

/// A stream of a CUDA device. Shares its submission queue with threads that pass on work which other streams wait for.
class cuda_queue final : public queue {
public:
    explicit cuda_queue(std::shared_ptr<submission_queue> to);
    ~cuda_queue() override;

    void reserve(std::size_t waits, const detail::task_ref& work) override { to_->reserve(waits, work); }
    void wait(point target) noexcept override { to_->wait(target); }
    void submit(epoch at, const operation& what) noexcept override { to_->submit(at, what); }
    void flush(point upto) noexcept override { to_->flush(upto); }
    [[nodiscard]] fast_path* fast() noexcept override { return to_.get(); }
    [[nodiscard]] void* handle() const noexcept override { return to_->of()->stream(); }
    void event_recorded(epoch at) noexcept override { to_->of()->program_recorded(at); }
    void share() noexcept override { to_->share(); }
    void await_shared(point upto) noexcept override { to_->await_shared(upto); }
    [[nodiscard]] std::optional<int> priority() const noexcept override;
    [[nodiscard]] implicit_order ordered_as() const noexcept override { return to_->of()->ordered_as(); }
    [[nodiscard]] bool is_idle() const override;
    [[nodiscard]] bool is_reachable() const noexcept override { return to_->of()->is_reachable(); }
    void expect_no_capture() const override;

private:
    std::shared_ptr<submission_queue> to_;
};

}  // namespace weir::backend::cuda
