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
#include "backend/cuda/driver_api.hpp"
#include "backend/cuda/event_pool.hpp"
#include "backend/cuda/host_bodies.hpp"
#include "backend/cuda/lane.hpp"
#include "backend/cuda/submissions.hpp"
#include "backend/recorded_queue.hpp"
#include "backend/task_threads.hpp"
#include "frontier/point.hpp"

namespace weir::backend::cuda {

/// What has been enqueued and is not in the driver's stream yet. As a rule the thread that enqueues passes it on at once
/// (`flush`). What the driver cannot see, a wait for another backend's work, a gate, a host task, holds up what is behind
/// it here (rule O9), and a thread of Weir's passes that on later:
///
///     submit --> records --flush--> waits, work --> the driver's stream
///                          |  not over, and no event can stand for it: held until it is
///                          |  a host task: runs here once all before it is over
///
/// Where nothing is held, and all that an operation waits for is in streams of the driver's, it goes there straight
/// (`claim`, `carry_out`).
///
/// Nothing that waits for the host is ever in the driver's stream, so that an event recorded there late waits for nothing
/// that might never come (rule O7), but for work of others (task_nature::foreign), which has an event before and behind it.
class submission final : public straight_way,
                         public recorded_queue,
                         public std::enable_shared_from_this<submission>,
                         private queue_events,
                         private blocking_work,
                         private waiter {
public:
    /// `bodies` runs host code that stands for work of the device, in tests; else null. Throws device_error,
    /// std::bad_alloc.
    submission(device_context& in, timeline& line, queue_events& owner, int priority, unsigned flags,
               host_bodies* bodies);
    /// The same into a stream that others own. Throws std::bad_alloc, device_error.
    submission(device_context& in, timeline& line, queue_events& owner, stream_handle adopted, host_bodies* bodies);
    ~submission() override = default;

    [[nodiscard]] const detail::owner<lane>& of() const noexcept { return lane_; }
    void reserve(std::size_t waits, const detail::task_ref& work) override;
    void wait(point target) noexcept override { targets_.push_back(target); }
    void submit(epoch at, const operation& what) noexcept override;
    void flush(point upto) noexcept override;
    bool claim(epoch at, const operation& what, std::span<const order::wait> waits) noexcept override;
    void carry_out(epoch at, const operation& what) noexcept override;
    /// Blocks until the driver has everything up to `upto`. False if it does not: the thread's waiting was ended, or it runs
    /// code of a stream, which may be what that waits for.
    [[nodiscard]] bool await_passed_on(point upto) noexcept {
        flush(upto);
        await_others(upto);
        return lane_->passed_on() >= upto.at;
    }
    void share() noexcept override;
    void await_shared(point upto) noexcept override;
    /// Whether others may put work into the stream.
    [[nodiscard]] bool is_shared() const noexcept { return is_shared_.load(std::memory_order_acquire); }

private:
    void make_ready();
    void await_others(point upto) noexcept;
    void schedule() noexcept override { unclaimed_.store(true, std::memory_order_release); }
    void reached() noexcept override { task_threads::instance().schedule_surely(*this); }
    void run_blocking() noexcept override;

    void pass_on(bool may_block) noexcept;
    [[nodiscard]] bool pass(point target) noexcept;
    [[nodiscard]] std::shared_ptr<submission> ordered_behind(point target) const noexcept;
    [[nodiscard]] bool find_event(point target, event_ref& event);
    [[nodiscard]] bool may_block_for(point target) noexcept;
    [[nodiscard]] bool hold_until(timeline& line, epoch at) noexcept;
    [[nodiscard]] bool pass_work_on(bool may_block) noexcept;
    [[nodiscard]] bool is_for_the_host(runtime::work_kind what, const detail::task_type* type) const noexcept;
    void run_ahead() noexcept;
    void submit_ahead() noexcept;
    struct straight_wait;
    [[nodiscard]] bool wait_straight(straight_wait& one) noexcept;
    void wait_here(const straight_wait& one) noexcept;
    void wait_for_claimed(bool is_plain) noexcept;
    [[nodiscard]] bool is_plain(const operation& what) const noexcept;
    void record_and_wait() noexcept;
    [[nodiscard]] bool claim_with_one(epoch at, std::span<const order::wait> waits) noexcept;
    [[nodiscard]] bool claim_with_wait(submissions::place& locked, epoch at, point target) noexcept;
    [[nodiscard]] bool claim_with_waits(epoch at, std::span<const order::wait> waits) noexcept;
    [[nodiscard]] bool claim_if_free(epoch at, std::span<const order::wait> waits) noexcept;
    [[nodiscard]] bool claim_for_code(epoch at, const operation& what, std::span<const order::wait> waits) noexcept;
    void claim_plainly(epoch at) noexcept;
    [[nodiscard]] bool cancel_waits() noexcept;
    void remember_passed(point target) noexcept;
    void carry_out_in_context(epoch at, const operation& what) noexcept;
    void put_plainly(epoch at, const operation& what) noexcept;
    void enters_plainly(epoch at) noexcept;
    /// What an operation put into the driver's stream. A call is work that surely is one of the driver's.
    enum class entered : std::uint8_t { nothing, work, call, foreign_work };
    [[nodiscard]] entered enter_stream(epoch at, const operation& what) noexcept;
    void has_entered(epoch at, entered what) noexcept;
    [[nodiscard]] bool is_body(const operation& what) const noexcept;
    void put_body(epoch at, const runtime::site& from, const detail::task_type* type, void* object);
    void put_into_stream(epoch at, const operation& what);
    void begin_times(lane::times& told) noexcept;
    void end_times(lane::times&& told);
    void tells_after_passed(lane::times& told) const;
    void keep_order(epoch at) noexcept;

    // What the records' owner is told.
    void failed(epoch at, const runtime::site& from, std::exception_ptr why) noexcept override {
        lane_->owner().failed(at, from, std::move(why));
    }
    void lost(epoch first, epoch last, std::exception_ptr why) noexcept override {
        lane_->owner().lost(first, last, std::move(why));
    }
    void executed(epoch at, std::chrono::steady_clock::time_point start,
                  std::chrono::steady_clock::time_point end) noexcept override {
        lane_->owner().executed(at, start, end);
    }
    bool comes_after(point target, point what) noexcept override { return lane_->owner().comes_after(target, what); }
    void busy() noexcept override {}  // the lane knows
    void idle() noexcept override {}
    bool examine(epoch at) noexcept override { return lane_->owner().may_run(at); }
    void heal(epoch at) noexcept override { lane_->owner().succeeded(at); }

    // What each operation needs, on one cache line.
    alignas(64) detail::owner<lane> lane_;
    host_bodies* bodies_;
    std::vector<point> passed_;           ///< waits of what is ahead that the driver does; of the thread that passes on
    timeline_id number_;                  ///< of the timeline
    std::atomic<bool> is_shared_{false};  ///< others put work into the stream, too
    std::atomic<bool>
        has_straight_way_;  ///< nobody else puts work into it, nor does the driver order it with other streams
    std::atomic<bool> unclaimed_{false};  ///< there are records and nobody passes them on
    std::atomic<bool> held_{false};       ///< what is ahead waits for something that is not in a stream of the driver's
    bool was_cancelled_ = false;          ///< a claim, which may have left `former` owners in `straight_`; as for these
    bool host_waits_ = false;             ///< what is ahead waits on the host; of the thread that passes on
    std::uint8_t straight_waits_ = 0;     ///< so many, or one_to_record; of the thread that passes on

    /// What `carry_out` has the stream wait for.
    struct straight_wait {
        point target;
        lane::awaited_end end;
    };
    static constexpr std::size_t most_straight = 8;
    /// There is one wait, and an event to be recorded for it where `end.of` says, which is not adopted.
    static constexpr std::uint8_t one_to_record = most_straight + 1;
    std::array<straight_wait, most_straight> straight_;  ///< of the thread that passes on
    std::vector<point> targets_;  ///< what the next operation waits for; of the thread that submits
};

/// A stream of a CUDA device. Shares its submission with those who pass on what others wait for.
class cuda_queue final : public queue {
public:
    explicit cuda_queue(std::shared_ptr<submission> to);
    ~cuda_queue() override;

    void reserve(std::size_t waits, const detail::task_ref& work) override { to_->reserve(waits, work); }
    void wait(point target) noexcept override { to_->wait(target); }
    void submit(epoch at, const operation& what) noexcept override { to_->submit(at, what); }
    void flush(point upto) noexcept override { to_->flush(upto); }
    [[nodiscard]] straight_way* straight() noexcept override { return to_.get(); }
    [[nodiscard]] void* native_handle() const noexcept override { return to_->of()->stream(); }
    void event_recorded(epoch at) noexcept override { to_->of()->program_recorded(at); }
    void share() noexcept override { to_->share(); }
    void await_shared(point upto) noexcept override { to_->await_shared(upto); }
    [[nodiscard]] std::optional<int> priority() const noexcept override;
    [[nodiscard]] implicit_order ordered_as() const noexcept override { return to_->of()->ordered_as(); }
    [[nodiscard]] bool is_idle() const override;
    void expect_no_capture() const override;

private:
    std::shared_ptr<submission> to_;
};

}  // namespace weir::backend::cuda
