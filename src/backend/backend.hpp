// The folder backend/ is the one narrow interface between Weir and the devices that run its work. backend.hpp declares what every
// device has, capability/ what only some have. Each other subfolder is one kind of device; only runtime/devices/devices.cpp names
// them. The folder includes order/ and frontier/.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "backend/capability/capabilities.hpp"
#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "order/plan.hpp"
#include "weir/detail/operation.hpp"
#include "weir/detail/rare.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/task.hpp"

namespace weir::backend {

/// What a queue gets. `timed`: it reports the operation's times to queue_events::executed.
using detail::operation;

/// Notifications from a queue to its owner, and its questions. Called on the thread that runs the operation, under no lock.
class queue_events {
public:
    /// Asked before the operation at `at` runs. false: the operation would use what a failed operation was to write (rule K4). It is
    /// then destroyed instead of run; its epoch completes all the same.
    [[nodiscard]] bool may_run(epoch at) noexcept { return !has_pending_failures() || examine(at); }
    /// The operation at `at` ran to its end without a failure.
    void succeeded(epoch at) noexcept {
        if (has_pending_failures()) [[unlikely]] {
            detail::cold_path();
            heal(at);
        }
    }
    /// The operation at `at` threw.
    virtual void failed(epoch at, const runtime::site& from, std::exception_ptr why) noexcept = 0;
    /// The operations from `first` to `last` are lost: the device runs nothing any more.
    virtual void lost(epoch first, epoch last, std::exception_ptr why) noexcept = 0;
    /// A timed operation ran, by the device's time.
    virtual void executed(epoch at, std::chrono::steady_clock::time_point start,
                          std::chrono::steady_clock::time_point end) noexcept = 0;
    /// Whether the operation at `target` comes after `what`, as far as streams know; both are incomplete. Under no lock.
    [[nodiscard]] virtual bool comes_after(point target, point what) noexcept = 0;
    /// `busy`: the queue has work and must stay. `idle`: it has none left, and its owner may destroy it. One `idle` for each `busy`.
    virtual void busy() noexcept = 0;
    virtual void idle() noexcept = 0;

    /// Whether the outcome of any operation of the process may concern operations that have not run. Set before the
    /// failed operation's epoch completes, so that every operation ordered after it sees it.
    [[nodiscard]] static bool has_pending_failures() noexcept {
        return pending_failures_.load(std::memory_order_relaxed) != 0;
    }
    static void add_pending_failure() noexcept { pending_failures_.fetch_add(1, std::memory_order_relaxed); }
    static void remove_pending_failure() noexcept { pending_failures_.fetch_sub(1, std::memory_order_relaxed); }

protected:
    ~queue_events() = default;

private:
    virtual bool examine(epoch at) noexcept = 0;
    virtual void heal(epoch at) noexcept = 0;

    static inline std::atomic<std::uint64_t> pending_failures_{0};
};

/// Runs an operation's work as every queue does: not if its owner says no; records the failure if it throws. The
/// caller then destroys the work, and after that completes the epoch. `type` is null if there is nothing to run. Whether
/// the work ran, if only until it failed.
inline bool run_work(queue_events& events, epoch at, const runtime::site& from, const detail::task_type* type,
                     void* object) noexcept {
    if (!events.may_run(at)) {
        return false;
    }
    if (type != nullptr) {
        try {
            type->run(object);
        } catch (...) {
            events.failed(at, from, std::current_exception());
            return true;
        }
    }
    events.succeeded(at);
    return true;
}

/// How the device itself orders a queue with others, in addition to the queue's waits (rule S6). Work that enters the legacy
/// queue comes after all that is in the blocking ones, and what enters these later comes after it.
enum class implicit_order : std::uint8_t { none, legacy, blocking };

/// Whether the device orders queues of the two kinds.
[[nodiscard]] constexpr bool ordered_by_device(implicit_order a, implicit_order b) noexcept {
    return a != implicit_order::none && b != implicit_order::none && a != b;
}

/// Options of a new queue.
struct queue_options {
    int priority = 0;       ///< smaller is more urgent; ignored if the device has no priorities
    bool blocking = false;  ///< implicit_order::blocking, if the device has that
};

/// Fast path of an operation into a queue that holds nothing back. Once `claim` has returned true, under the stream's lock, the same
/// thread calls `carry_out` for the same operation, under no lock. The two replace the queue's `reserve`, `wait`, `submit` and
/// `flush`.
class fast_path {
public:
    [[nodiscard]] virtual bool claim(epoch at, const operation& what, std::span<const order::wait> waits) noexcept = 0;
    virtual void carry_out(epoch at, const operation& what) noexcept = 0;

    /// Prefetches the cache lines that an operation will need here. Otherwise the processor would reach them pointer by pointer.
    [[gnu::always_inline]] void fetch_ahead() const noexcept {
        // Without a loop, which would be no shorter and take longer.
        __builtin_prefetch(lines_[0], 1);
        __builtin_prefetch(lines_[1], 1);
        __builtin_prefetch(lines_[2], 1);
        __builtin_prefetch(lines_[3], 1);
    }

protected:
    using cache_lines = std::array<const void*, 4>;
    fast_path() = default;
    ~fast_path() = default;
    /// Sets, once, the addresses of these cache lines.
    void lies_at(const cache_lines& lines) noexcept { lines_ = lines; }

private:
    cache_lines lines_{};
};

/// One in-order queue of a device: the device's side of a stream. Its work completes epochs of one timeline.
///
/// `reserve` and `submit` are called by one thread at a time (under the stream's lock).
class queue {
public:
    queue() = default;
    queue(const queue&) = delete;
    queue& operator=(const queue&) = delete;
    virtual ~queue() = default;

    /// Makes room for one operation after `waits` waits, so that the next `submit` cannot fail. Throws std::bad_alloc.
    virtual void reserve(std::size_t waits, const detail::task_ref& work) = 0;

    /// On the device: what is submitted from now on starts once `target` is complete.
    virtual void wait(point target) noexcept = 0;

    /// Accepts an operation, which completes `at`. Does not wait for other work.
    virtual void submit(epoch at, const operation& what) noexcept = 0;

    /// Called after `submit`, under no lock of Weir's. A device without queues now runs what was submitted up to `upto`, and the call
    /// returns once that is complete (rule S8). An adopted or shared queue now gets what was submitted.
    virtual void flush(point /*upto*/) noexcept {}

    /// The fast path of the queue, for as long as the queue lives; null if it has none.
    [[nodiscard]] virtual fast_path* fast() noexcept { return nullptr; }

    /// The program recorded an event behind the operation at `at`, which was enqueued last: a wait for that must cover nothing later
    /// (rule O7). Does not block. Any thread.
    virtual void event_recorded(epoch /*at*/) noexcept {}

    /// The handle by which other code knows the queue; null if it has none.
    [[nodiscard]] virtual void* handle() const noexcept { return nullptr; }
    /// From now on other code may put work into the queue, which Weir never sees (rule O2). What is submitted is in the queue when
    /// `flush` returns, which blocks for that if it must (rule O9), and has its own point there. Under the stream's lock;
    /// `await_shared` must follow, under no lock.
    virtual void share() noexcept {}
    /// Blocks until everything up to `upto` is in the device's queue, and so is what Weir records there for it, or until the thread's
    /// interruptible ends the wait. Then other code may put work there. In a stream's code it does not block: the queue may wait for that.
    virtual void await_shared(point /*upto*/) noexcept {}
    /// The priority that the device uses; empty where it knows none.
    [[nodiscard]] virtual std::optional<int> priority() const noexcept { return std::nullopt; }
    [[nodiscard]] virtual implicit_order ordered_as() const noexcept { return implicit_order::none; }
    /// Whether all work in the queue, Weir's or not, is complete, as far as the queue itself knows. Never blocks. Throws as
    /// expect_no_capture.
    [[nodiscard]] virtual bool is_idle() const { return true; }
    /// Whether the calling thread can put work into the queue: not into the default stream of another thread.
    [[nodiscard]] virtual bool is_reachable() const noexcept { return true; }
    /// For a queue that other code also uses: throws state_error while that code captures what enters the queue into a graph instead of
    /// having it run (rule G1). Under no lock of Weir's.
    virtual void expect_no_capture() const {}
};

/// A chunk of a device's memory: its address on the device, and the offset from there to the address of the same byte on the host.
/// If the host cannot reach the memory, its host address is only a placeholder (access faults), or equals the device's.
struct memory_chunk {
    std::byte* address = nullptr;
    std::ptrdiff_t to_host = 0;
};

/// Where a pool gets its memory from: usually a device's driver.
class memory_source {
public:
    memory_source() = default;
    memory_source(const memory_source&) = delete;
    memory_source& operator=(const memory_source&) = delete;
    virtual ~memory_source() = default;

    /// For messages; for a driver, the device's name.
    [[nodiscard]] virtual std::string_view name() const noexcept = 0;

    /// Memory of the device, aligned to 256 bytes; without an address if there is none left. Slow: the pool calls it for
    /// large chunks.
    [[nodiscard]] virtual memory_chunk allocate(std::size_t bytes) noexcept = 0;
    /// Frees memory of `allocate`. Nothing may be using it any more.
    virtual void deallocate(memory_chunk memory, std::size_t bytes) noexcept = 0;
    /// Blocks until all memory that was given back can be allocated again, where that takes time. Under no lock of Weir's.
    virtual void await_given_back() noexcept {}
    /// Throws device_error, with the reason, if the device is lost: then the cause of a failed allocation is not a lack of memory.
    virtual void expect_sound() const {}
    /// Bytes of memory the device has; the pool never takes more. 0: unknown.
    [[nodiscard]] virtual std::size_t total_memory() const noexcept = 0;

    /// Whether code on the host can use the memory as the device does.
    [[nodiscard]] virtual bool host_reaches_memory() const noexcept = 0;
    /// Whether it is host memory that CUDA devices copy from and to directly.
    [[nodiscard]] virtual bool is_pinned() const noexcept { return false; }
    /// @{
    /// Whether the host may touch the memory only while nothing runs on the device (rule O6); waits for what is in the
    /// device's own queues. Throws device_error.
    [[nodiscard]] virtual bool needs_idle_device() const noexcept { return false; }
    virtual void await_idle_device() {}
    /// @}
};

/// A device, as a backend implements it.
class driver : public memory_source {
public:
    driver() = default;
    ~driver() override = default;

    /// What the device can do in addition to what is declared here. Makes no call.
    [[nodiscard]] const capabilities& can() const noexcept { return can_; }

    /// A queue whose work completes epochs of `line`. `events` must outlive it. Throws std::bad_alloc, device_error.
    [[nodiscard]] virtual std::unique_ptr<queue> make_queue(timeline& line, queue_events& events,
                                                            const queue_options& how) = 0;

    /// @{
    /// Adopts a queue that other code owns, by its handle. `identify` returns a number that tells it apart from all other queues of the
    /// device, also from earlier ones with the same handle. Throws argument_error (no such queue; a device without handles), device_error.
    [[nodiscard]] virtual std::unique_ptr<queue> adopt_queue(void* handle, timeline& line, queue_events& events);
    [[nodiscard]] virtual std::uint64_t identify(void* handle) const;
    /// @}

    /// The number of the device of this kind that an address belongs to; empty if the address is in no device's memory, or the kind does
    /// not know. Never blocks.
    [[nodiscard]] virtual std::optional<int> device_of(const void* /*address*/) const noexcept { return std::nullopt; }

    /// Whether the body of an operation of the device may be host code that does the work itself; otherwise it has to put the work into
    /// the device's queue (detail::task_nature).
    [[nodiscard]] virtual bool runs_host_code() const noexcept { return true; }

    /// Whether queues of this device can wait for work of the device `whose`; null: for a gate. A forwarding_queue in front of them
    /// waits for everything else.
    [[nodiscard]] virtual bool can_wait_for(const driver* /*whose*/) const noexcept { return true; }

    /// Returns memory to the device that was given back to the driver and that the driver caches. Does not wait.
    virtual void trim() noexcept {}
    /// What a message about missing memory should say in addition to what the pools know: sentences, or nothing.
    [[nodiscard]] virtual std::string about_shortage() const { return {}; }

    /// @{
    /// A point, of no queue, that is complete once all work put into the device up to now is, Weir's or not; no queue may wait for it.
    /// Empty if the device does not support this. May end captures of other code (rule L5).
    [[nodiscard]] virtual std::optional<point> record_end_of_all() noexcept { return std::nullopt; }
    /// Blocks until all that work is complete. False if that fails, or the device does not support this.
    [[nodiscard]] virtual bool await_end_of_all() noexcept { return false; }
    /// @}

    /// Whether a queue that waits for `end` waits for nothing that was submitted after `end`. Blocks for no work and queries no
    /// device; may take a leaf lock of the driver.
    [[nodiscard]] virtual bool has_own_end(point /*end*/) const noexcept { return true; }

    /// The device's time. A simulated device under a virtual clock has its own time.
    [[nodiscard]] virtual std::chrono::steady_clock::time_point now() const noexcept {
        return std::chrono::steady_clock::now();
    }
    /// Whether the device has a virtual clock. Does not change while operations are pending.
    [[nodiscard]] virtual bool has_virtual_clock() const noexcept { return false; }

    /// Copies memory of the device to the host. Blocks until the copy is complete. Nothing may be writing to `device`.
    virtual void fetch(std::byte* host, const std::byte* device, std::size_t bytes) = 0;
    /// Copies memory of the host to the device. Blocks until the copy is complete. Nothing may be using `device`.
    virtual void store(std::byte* device, const std::byte* host, std::size_t bytes) = 0;

    /// @{
    /// Whether this is a device that does not notify the host of completion, so that a host thread has to look: its timelines lag behind
    /// until then. Call the functions of this group under no lock of Weir's, since looking completes epochs.
    [[nodiscard]] virtual bool is_asked() const noexcept { return false; }
    /// Looks for complete operations in a stream.
    virtual void look(point /*wanted*/) const noexcept {}
    /// Looks for complete operations in all its streams.
    virtual void look_at_all() const noexcept {}
    /// Polls for a short time. Whether `wanted` is complete.
    [[nodiscard]] virtual bool await(point /*wanted*/) const noexcept { return false; }
    /// A driver event that is complete when `wanted` is, or a little later; while the caller holds it, it is not used for anything
    /// else. Blocks until the driver has the work (rule O9). Null if the device has no such events.
    /// Throws device_error, state_error (in code of a stream, which must not wait for that), std::bad_alloc.
    [[nodiscard]] virtual std::shared_ptr<void> native_event(point /*wanted*/) const { return nullptr; }
    /// What enters the driver's queue `queue` from now on starts after an event that other code recorded. Both are handles of the
    /// driver. Throws device_error.
    virtual void wait_for_event(void* event, void* queue) const;
    /// A wait has begun: from now on until `wanted` is complete, a thread looks for that.
    virtual void hurry(point /*wanted*/) const noexcept {}
    /// @}

protected:
    /// Sets what the device can do. Called in the driver's constructor.
    void set(const capabilities& what) noexcept { can_ = what; }

private:
    capabilities can_;
};

}  // namespace weir::backend
