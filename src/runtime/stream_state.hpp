#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "backend/backend.hpp"
#include "backend/hot_mutex.hpp"
#include "frontier/point.hpp"
#include "order/mark.hpp"
#include "order/sequencer.hpp"
#include "order/short_plan.hpp"
#include "runtime/observer.hpp"
#include "runtime/ordering.hpp"
#include "runtime/pending.hpp"
#include "runtime/retired_owner.hpp"
#include "weir/detail/intrusive.hpp"
#include "weir/native_queue.hpp"

namespace weir::runtime {

/// What tells a queue of others apart from all other queues: never given to another one, unlike addresses and handles.
struct native_identity {
    const device_state* of = nullptr;  ///< null: of a native_queue
    std::uint64_t id = 0;

    friend bool operator<(const native_identity& a, const native_identity& b) noexcept {
        return a.of != b.of ? std::less<>()(a.of, b.of) : a.id < b.id;
    }
};

/// A queue of others that becomes a stream: one that they describe, or one that the device's driver knows.
struct native_source {
    native_queue* queue = nullptr;
    void* handle = nullptr;  ///< if `queue` is null
    native_identity identity;
};

/// What all copies of a stream share. Owners: the user's stream objects, and the queue while it has work (rule S4).
/// What each operation needs lies together: three cache lines.
class alignas(64) stream_state final : public detail::counted<stream_state, true>, private backend::queue_events {
public:
    /// Throws std::bad_alloc.
    static detail::owner<stream_state> make(device_state& device, const backend::queue_options& how, std::string name);
    /// The default stream of a device. Throws std::bad_alloc.
    static detail::owner<stream_state> make_default(device_state& device);
    /// The stream of a queue that others own: the one that there is, unless it is closed, else a new one. The queue's
    /// owner, if any, stays as long as the stream.
    static detail::owner<stream_state> adopt(native_queue& native, std::shared_ptr<void> owner);
    /// The same for a queue that the device's driver knows by its handle. Throws argument_error, device_error.
    static detail::owner<stream_state> adopt(device_state& device, void* handle, std::shared_ptr<void> owner);

    [[nodiscard]] device_state& device() const noexcept { return *device_; }
    /// The device whose memory its operations use (device_state::memory_space).
    [[nodiscard]] const device_state* memory_space() const noexcept { return memory_space_; }
    [[nodiscard]] const stream_info& info() const noexcept { return info_; }
    [[nodiscard]] int priority() const noexcept { return how_.priority; }
    [[nodiscard]] bool blocking() const noexcept { return how_.blocking; }
    [[nodiscard]] frontiers::timeline_id timeline() const noexcept { return sequence.timeline(); }
    [[nodiscard]] std::uint64_t id() const noexcept { return info_.id; }

    /// Guards `sequence`, `queue`, what enters them, and `pending`. In the lock order after buffers and devices; among
    /// streams by id.
    backend::hot_mutex mutex;
    std::unique_ptr<backend::queue> queue;
    order::sequencer sequence;
    pending_operations pending;

    std::atomic<bool> closed{false};
    /// Throws state_error if closed.
    void expect_open() const;
    /// Throws state_error if the waits are for the very code that the calling thread runs, as of a host task, and nobody else could
    /// enqueue what comes after them: the stream is the thread's default one.
    void expect_not_behind_itself(std::span<const order::wait> waits) const;
    /// The same for waits behind which a package goes on as soon as the call returns: what comes first in its stream of the driver's
    /// must be there then.
    void expect_handed_back_at_once(std::span<const order::wait> waits) const;

    [[nodiscard]] std::optional<ordering_mode> ordering() const noexcept { return mode_.get(); }
    [[nodiscard]] bool has_ordering() const noexcept { return mode_.is_set(); }
    void set_ordering(std::optional<ordering_mode> mode) noexcept { mode_.set(mode); }

    /// Whether others may put work into the stream that Weir never sees.
    [[nodiscard]] bool is_shared() const noexcept { return is_shared_.load(std::memory_order_relaxed); }
    /// Whether others own its queue.
    [[nodiscard]] bool is_adopted() const noexcept { return native_id_.id != 0; }
    /// The handle by which others know the queue, who may put work into it from now on; null if it has none. Blocks until what was
    /// enqueued before is in the queue (rule O9), but not in code of a stream. Call with no lock held. Throws state_error.
    [[nodiscard]] void* hand_out();
    /// Whether nothing that anybody has put into the stream is unfinished. Call with no lock held.
    [[nodiscard]] bool idle(const source_location& where);
    /// Of an adopted stream: its native queue's, which may be gone itself by now. Of one whose handle was given out: what its
    /// device's driver tells it apart by.
    [[nodiscard]] const native_identity& native_id() const noexcept { return is_adopted() ? native_id_ : handed_out_; }
    /// States the latter. Under the lock of adopted_streams.
    void is_known_as(const native_identity& id) noexcept { handed_out_ = id; }
    /// adopted_streams has it from now on. Under its lock.
    void is_listed() noexcept { is_listed_ = true; }
    /// The device, the registry and observers know a new stream from now on. Throws std::bad_alloc; then the stream is to be dropped.
    void enter();
    /// Has an adopted stream keep the owner of its native queue, unless it keeps one. Under the lock of adopted_streams.
    void keep_owner(std::unique_ptr<retired_owner>& owner) noexcept {
        if (!native_owner_) {
            native_owner_ = std::move(owner);
        }
    }

    /// How far it is.
    [[nodiscard]] backend::epoch completed() const noexcept {
        return backend::timeline_table::instance().completed(timeline());
    }
    /// Makes room in `pending` for one operation. Throws std::bad_alloc.
    void reserve_pending(std::size_t accesses, std::size_t points) {
        pending.reserve(accesses, points, [&] { return completed(); });
    }

    /// How the device itself orders the stream with others.
    [[nodiscard]] backend::implicit_order ordered_as() const noexcept { return ordered_as_; }
    /// Whether others put work into it as well, or its device orders it with other streams by itself.
    [[nodiscard]] bool has_company() const noexcept { return has_company_.load(std::memory_order_relaxed); }
    /// Before anything enters the stream: if others put work into it, they are not just capturing it (rule G1). Call with no lock
    /// held. Throws state_error.
    void expect_no_capture() const;
    /// The same; and what enters the stream from now on comes after what the device puts before it by itself (rule S6), and is known
    /// to. To observers that is the program's own order. Throws std::bad_alloc, argument_error (another thread's default stream), too.
    void make_ready(const source_location& where) {
        if (!has_company()) {
            return;
        }
        expect_no_capture();
        if (ordered_as_ != backend::implicit_order::none) {
            follow_others(where);
        }
    }

    /// The end of what Weir has put into the stream.
    [[nodiscard]] order::mark tail();
    /// The end of what anybody has put into the stream: of an adopted stream a fresh epoch, which is in the native queue
    /// when this returns (rule O2). Call with no lock held. Throws std::bad_alloc; operation_error if the native queue
    /// does not take it.
    [[nodiscard]] order::mark now(const source_location& where);
    /// The same in two steps: the first one under the stream's lock, the second one under none.
    [[nodiscard]] order::mark mark_end(const source_location& where);
    void publish_end(const order::mark& end);

    void last_owner_gone() noexcept;

private:
    friend class detail::counted<stream_state, true>;
    stream_state(device_state& device, frontiers::timeline_id timeline, const backend::queue_options& how,
                 std::string name, const native_source* native, default_kind default_of);
    /// A stream that nothing else knows: `enter` is the next step.
    static detail::owner<stream_state> make(device_state& device, const backend::queue_options& how, std::string name,
                                            const native_source* native, default_kind default_of);
    [[nodiscard]] static default_kind default_of(const native_source& native) noexcept;
    static detail::owner<stream_state> adopt(device_state& device, const native_source& native,
                                             std::shared_ptr<void> owner);
    ~stream_state() = default;
    void note_queue() noexcept;
    void follow_others(const source_location& where);
    void follow(stream_state& other, const source_location& where);
    [[nodiscard]] bool has_followed(frontiers::point end) const;
    void tell_gone() noexcept;

    void failed(backend::epoch at, const site& from, std::exception_ptr why) noexcept override;
    void lost(backend::epoch first, backend::epoch last, std::exception_ptr why) noexcept override;
    bool examine(backend::epoch at) noexcept override;
    bool comes_after(backend::point target, backend::point what) noexcept override;
    void heal(backend::epoch at) noexcept override;
    void executed(backend::epoch at, std::chrono::steady_clock::time_point start,
                  std::chrono::steady_clock::time_point end) noexcept override;
    void busy() noexcept override { add_owner(); }
    void idle() noexcept override { drop_owner(); }

    backend::implicit_order ordered_as_ = backend::implicit_order::none;
    std::atomic<bool> has_company_{false};
    own_ordering mode_;
    std::atomic<bool> is_shared_;
    bool is_listed_ = false;  ///< in adopted_streams
    device_state* device_;
    const device_state* memory_space_;

public:
    /// The queue's, if it has one.
    backend::straight_way* straight = nullptr;
    /// Of the operation that gets its place just now; under `mutex`.
    order::short_plan needs;

private:
    // What follows no operation needs as a rule.
    std::string name_;
    stream_info info_;
    backend::queue_options how_;
    /// Up to where observers know that it has followed others, by their timelines: as many entries as streams lived at the same
    /// time. Empty where nothing observes. Under `mutex`.
    std::map<frontiers::timeline_id, frontiers::epoch> followed_;
    native_queue* native_;  ///< null if the stream is Weir's own, or the driver's
    native_identity native_id_;
    native_identity handed_out_{};
    std::unique_ptr<retired_owner> native_owner_;
};

}  // namespace weir::runtime
