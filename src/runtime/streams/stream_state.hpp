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
#include "observe/observer.hpp"
#include "order/mark.hpp"
#include "order/sequencer.hpp"
#include "order/short_plan.hpp"
#include "runtime/lifetime/retired_owner.hpp"
#include "runtime/submission/ordering.hpp"
#include "runtime/submission/pending.hpp"
#include "weir/detail/intrusive.hpp"
#include "weir/native_queue.hpp"

namespace weir::runtime {

/// Identifies a queue that Weir does not own. Never reused, unlike addresses and handles.
struct native_identity {
    const device_state* of = nullptr;  ///< null: the queue is a native_queue
    std::uint64_t id = 0;

    friend bool operator<(const native_identity& a, const native_identity& b) noexcept {
        return a.of != b.of ? std::less<>()(a.of, b.of) : a.id < b.id;
    }
};

/// A foreign queue that becomes a stream: one that a native_queue describes, or one that the device's driver knows by a handle.
struct native_source {
    native_queue* queue = nullptr;
    void* handle = nullptr;  ///< used if `queue` is null
    native_identity identity;
};

/// The state that all copies of a stream share. Owners: the user's stream objects, and the queue while it has work (rule S4).
/// The members that each operation needs lie together, in three cache lines.
class alignas(64) stream_state final : public detail::counted<stream_state, true>, private backend::queue_events {
public:
    /// Throws std::bad_alloc.
    static detail::owner<stream_state> make(device_state& device, const backend::queue_options& how, std::string name);
    /// The default stream of a device. Throws std::bad_alloc.
    static detail::owner<stream_state> make_default(device_state& device);
    /// The stream of a queue that Weir does not own: the existing stream, unless it is closed, else a new one. Keeps the queue's
    /// owner, if any, as long as the stream lives.
    static detail::owner<stream_state> adopt(native_queue& native, std::shared_ptr<void> owner);
    /// The same for a queue that the device's driver knows by its handle. Throws argument_error, device_error.
    static detail::owner<stream_state> adopt(device_state& device, void* handle, std::shared_ptr<void> owner);

    [[nodiscard]] device_state& device() const noexcept { return *device_; }
    /// The device whose memory its operations use (device_state::memory_space).
    [[nodiscard]] const device_state* memory_space() const noexcept { return memory_space_; }
    [[nodiscard]] const observe::stream_info& info() const noexcept { return info_; }
    [[nodiscard]] int priority() const noexcept { return how_.priority; }
    [[nodiscard]] bool blocking() const noexcept { return how_.blocking; }
    [[nodiscard]] frontiers::timeline_id timeline() const noexcept { return sequence.timeline(); }
    [[nodiscard]] std::uint64_t id() const noexcept { return info_.id; }

    /// Guards `sequence`, `queue`, what enters them, and `pending`. In the lock order after buffers and devices; among streams by
    /// id.
    backend::hot_mutex mutex;
    std::unique_ptr<backend::queue> queue;
    order::sequencer sequence;
    pending_operations pending;

    std::atomic<bool> closed{false};
    /// Throws state_error if closed.
    void expect_open() const;
    /// Throws state_error if the waits are for the code that the calling thread itself runs, such as a host task, and the stream is that
    /// thread's default stream: no other thread could then enqueue what comes after the waits.
    void expect_not_behind_itself(std::span<const order::wait> waits) const;
    /// The same for waits after which a package continues as soon as the call returns: the waits must be in the package's driver stream
    /// by then.
    void expect_handed_back_at_once(std::span<const order::wait> waits) const;

    [[nodiscard]] std::optional<ordering_mode> ordering() const noexcept { return mode_.get(); }
    [[nodiscard]] bool has_ordering() const noexcept { return mode_.is_set(); }
    void set_ordering(std::optional<ordering_mode> mode) noexcept { mode_.set(mode); }

    /// Whether other code may put work into the stream that Weir never sees.
    [[nodiscard]] bool is_shared() const noexcept { return is_shared_.load(std::memory_order_relaxed); }
    /// Whether Weir does not own its queue.
    [[nodiscard]] bool is_adopted() const noexcept { return native_id_.id != 0; }
    /// The queue's native handle, through which other code may put work into the queue from now on; null if it has none. Blocks until
    /// all operations enqueued before are in the queue (rule O9), but not in code of a stream. Call with no lock held. Throws state_error.
    [[nodiscard]] void* hand_out();
    /// Whether all work in the stream is complete, whether Weir or other code has put it there. Call with no lock held.
    [[nodiscard]] bool idle(const source_location& where);
    /// For an adopted stream: the identity of its native queue, which may already be destroyed. For a stream whose handle was given out:
    /// the identity that its device's driver gives it.
    [[nodiscard]] const native_identity& native_id() const noexcept { return is_adopted() ? native_id_ : handed_out_; }
    /// Sets the latter. Under the lock of adopted_streams.
    void is_known_as(const native_identity& id) noexcept { handed_out_ = id; }
    /// The stream is in adopted_streams from now on. Under its lock.
    void is_listed() noexcept { is_listed_ = true; }
    /// Makes a new stream known to the device, the registry and observers. Throws std::bad_alloc; the stream must then be dropped.
    void enter();
    /// Makes an adopted stream keep the owner of its native queue, unless it keeps one already. Under the lock of adopted_streams.
    void keep_owner(std::unique_ptr<retired_owner>& owner) noexcept {
        if (!native_owner_) {
            native_owner_ = std::move(owner);
        }
    }

    /// The last complete epoch.
    [[nodiscard]] backend::epoch completed() const noexcept {
        return backend::timeline_table::instance().completed(timeline());
    }
    /// Reserves room in `pending` for one operation. Throws std::bad_alloc.
    void reserve_pending(std::size_t accesses, std::size_t points) {
        pending.reserve(accesses, points, [&] { return completed(); });
    }

    /// How the device itself orders the stream with other streams.
    [[nodiscard]] backend::implicit_order ordered_as() const noexcept { return ordered_as_; }
    /// Whether other code puts work into the stream as well, or its device orders it with other streams implicitly.
    [[nodiscard]] bool has_company() const noexcept { return has_company_.load(std::memory_order_relaxed); }
    /// Must be called before anything enters the stream: checks that other code, if it shares the stream, is not capturing it now (rule
    /// G1). Call with no lock held. Throws state_error.
    void expect_no_capture() const;
    /// The same; in addition, what enters the stream from now on is known to come after what the device puts before it implicitly
    /// (rule S6). Observers treat that as the program's own order. Also throws std::bad_alloc, argument_error (another thread's default
    /// stream).
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
    /// The end of all work in the stream, whether Weir or other code has put it there. For an adopted stream: a fresh epoch, which is in
    /// the native queue when this returns (rule O2). Call with no lock held. Throws std::bad_alloc; operation_error if the native queue
    /// refuses it.
    [[nodiscard]] order::mark now(const source_location& where);
    /// The same in two steps: `record_end` under the stream's lock, `publish_end` under no lock.
    [[nodiscard]] order::mark record_end(const source_location& where);
    void publish_end(const order::mark& end);

    void last_owner_gone() noexcept;

private:
    friend class detail::counted<stream_state, true>;
    stream_state(device_state& device, frontiers::timeline_id timeline, const backend::queue_options& how,
                 std::string name, const native_source* native, observe::default_kind default_of);
    /// A stream that nothing else knows yet: the caller calls `enter` next.
    static detail::owner<stream_state> make(device_state& device, const backend::queue_options& how, std::string name,
                                            const native_source* native, observe::default_kind default_of);
    [[nodiscard]] static observe::default_kind default_of(const native_source& native) noexcept;
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
    /// The queue's fast path; null if it has none.
    backend::fast_path* fast = nullptr;
    /// The plan of the operation that is being enqueued; guarded by `mutex`.
    order::short_plan needs;

private:
    // Operations usually need none of the following.
    std::string name_;
    observe::stream_info info_;
    backend::queue_options how_;
    /// How far, as observers know, the stream has followed other streams, by their timelines: at most as many entries as streams lived at
    /// the same time. Empty if there are no observers. Guarded by `mutex`.
    std::map<frontiers::timeline_id, frontiers::epoch> followed_;
    native_queue* native_;  ///< null if the queue is Weir's own, or the driver's
    native_identity native_id_;
    native_identity handed_out_{};
    std::unique_ptr<retired_owner> native_owner_;
};

}  // namespace weir::runtime
