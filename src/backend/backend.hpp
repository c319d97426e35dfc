// The folder backend/ is the one narrow interface between Weir and what runs its work. backend.hpp declares it, each
// subfolder is one kind of device. It includes order/ and frontier/.
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

#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "order/plan.hpp"
#include "weir/detail/operation.hpp"
#include "weir/detail/rare.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/task.hpp"

namespace weir::backend {

/// What a queue gets. `timed`: it reports to queue_events::executed.
using detail::operation;

/// What a queue tells its owner, and asks it. Called on the thread that runs the operation, under no lock.
class queue_events {
public:
    /// Asked before the operation at `at` runs. false: it would use what a failed operation was to write (rule K4), and is
    /// destroyed instead; its epoch completes all the same.
    [[nodiscard]] bool may_run(epoch at) noexcept { return !in_trouble() || examine(at); }
    /// The operation at `at` ran to its end without a failure.
    void succeeded(epoch at) noexcept {
        if (in_trouble()) [[unlikely]] {
            detail::rare();
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
    /// Whether the operation at `target` comes after `what`, as far as streams have been told: neither is over. Under no lock.
    [[nodiscard]] virtual bool comes_after(point target, point what) noexcept = 0;
    /// The queue has work and must stay (`busy`), or has none left and its owner may let it go: counted, one `idle` for each `busy`.
    virtual void busy() noexcept = 0;
    virtual void idle() noexcept = 0;

    /// Whether the outcome of any operation of the process may concern operations that have not run. Set before the
    /// failed operation's epoch completes, so that whoever is ordered after it sees it.
    [[nodiscard]] static bool in_trouble() noexcept { return troubles_.load(std::memory_order_relaxed) != 0; }
    static void more_trouble() noexcept { troubles_.fetch_add(1, std::memory_order_relaxed); }
    static void less_trouble() noexcept { troubles_.fetch_sub(1, std::memory_order_relaxed); }

protected:
    ~queue_events() = default;

private:
    virtual bool examine(epoch at) noexcept = 0;
    virtual void heal(epoch at) noexcept = 0;

    static inline std::atomic<std::uint64_t> troubles_{0};
};

/// Runs an operation's work as every queue does: not if its owner says no, and noting the failure if it throws. The
/// caller then destroys the work, and after that completes the epoch. `type` is null if there is nothing to run. Whether
/// it ran, if only until it failed.
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

/// How the device itself orders a queue with others, beside what they wait for (rule S6). Work that enters the legacy
/// queue comes after all that is in the blocking ones, and what enters these later comes after it.
enum class implicit_order : std::uint8_t { none, legacy, blocking };

/// Whether the device orders a queue of the one kind with a queue of the other.
[[nodiscard]] constexpr bool ordered_by_device(implicit_order a, implicit_order b) noexcept {
    return a != implicit_order::none && b != implicit_order::none && a != b;
}

/// How to make a queue.
struct queue_options {
    int priority = 0;       ///< smaller is more urgent, as far as the device knows priorities
    bool blocking = false;  ///< implicit_order::blocking, where the device has that
};

/// The way of an operation into a queue where nothing stands in between: once `claim` has said yes, under the stream's lock, the
/// same thread calls `carry_out` for the same operation, under no lock, instead of the queue's `reserve`, `wait`, `submit` and
/// `flush`.
class straight_way {
public:
    [[nodiscard]] virtual bool claim(epoch at, const operation& what, std::span<const order::wait> waits) noexcept = 0;
    virtual void carry_out(epoch at, const operation& what) noexcept = 0;

    /// Has the processor fetch what an operation will need here, which it would find by following one pointer after the other.
    [[gnu::always_inline]] void fetch_ahead() const noexcept {
        // Without a loop: that would be no shorter, and take longer.
        __builtin_prefetch(lines_[0], 1);
        __builtin_prefetch(lines_[1], 1);
        __builtin_prefetch(lines_[2], 1);
        __builtin_prefetch(lines_[3], 1);
    }

protected:
    using cache_lines = std::array<const void*, 4>;
    straight_way() = default;
    ~straight_way() = default;
    /// Says once where that lies.
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

    /// Device-side: what is submitted from now on starts once `target` is over.
    virtual void wait(point target) noexcept = 0;

    /// Takes an operation, which completes `at`. Does not wait for other work.
    virtual void submit(epoch at, const operation& what) noexcept = 0;

    /// Called after `submit`, under no lock of Weir's: a device without queues runs now what was submitted up to `upto`,
    /// and returns once it is over (rule S8); a queue of others gets now what was submitted.
    virtual void flush(point /*upto*/) noexcept {}

    /// Where operations go straight, as long as the queue lives; null if none does.
    [[nodiscard]] virtual straight_way* straight() noexcept { return nullptr; }

    /// The program recorded an event behind the operation at `at`, which was enqueued last: a wait for that is to cover nothing later
    /// (rule O7). Does not block. Any thread.
    virtual void event_recorded(epoch /*at*/) noexcept {}

    /// The handle by which others know the queue; null if it has none.
    [[nodiscard]] virtual void* native_handle() const noexcept { return nullptr; }
    /// From now on others may put work into the queue, which Weir never sees (rule O2): what is submitted is in the queue when
    /// `flush` returns, which blocks for that if it must (rule O9), and has a point of its own there. Under the stream's lock;
    /// `await_shared` follows under none.
    virtual void share() noexcept {}
    /// Blocks until everything up to `upto` is in the device's queue, and so is what Weir records there for it: others may put work
    /// into the queue from then on. Code of a stream does not wait, since the queue may wait for that code.
    virtual void await_shared(point /*upto*/) noexcept {}
    /// As the device took it; empty where it knows none.
    [[nodiscard]] virtual std::optional<int> priority() const noexcept { return std::nullopt; }
    [[nodiscard]] virtual implicit_order ordered_as() const noexcept { return implicit_order::none; }
    /// Whether nothing that anybody has put into the queue is unfinished, as far as the queue itself knows. Never blocks. Throws
    /// as expect_no_capture.
    [[nodiscard]] virtual bool is_idle() const { return true; }
    /// Of one that others put work into, too: throws state_error if they record just then what enters it, for a graph, instead of
    /// having it run (rule G1). Under no lock of Weir's.
    virtual void expect_no_capture() const {}
};

/// A piece of a device's memory: where the device finds it, and how far from there the host would look for the same byte.
/// Where the host cannot reach the memory of a device, that address only tells so (it faults), or is the device's own.
struct memory_piece {
    std::byte* address = nullptr;
    std::ptrdiff_t to_host = 0;
};

/// Where a pool has its memory from: a device's driver as a rule.
class memory_source {
public:
    memory_source() = default;
    memory_source(const memory_source&) = delete;
    memory_source& operator=(const memory_source&) = delete;
    virtual ~memory_source() = default;

    /// For messages; of a driver, the device's name.
    [[nodiscard]] virtual std::string_view name() const noexcept = 0;

    /// Memory of the device, aligned to 256 bytes; without an address if there is none left. Slow: the pool calls it for
    /// large pieces.
    [[nodiscard]] virtual memory_piece allocate(std::size_t bytes) noexcept = 0;
    /// Gives it back. Nothing may be using it any more.
    virtual void deallocate(memory_piece memory, std::size_t bytes) noexcept = 0;
    /// Blocks until all that was given back can be had again, where that takes its time. Under no lock of Weir's.
    virtual void await_given_back() noexcept {}
    /// Throws device_error, which says why, if the device is lost: then memory is not what is missing.
    virtual void expect_sound() const {}
    /// Bytes of memory the device has; the pool never takes more. 0: nobody knows.
    [[nodiscard]] virtual std::size_t total_memory() const noexcept = 0;

    /// Whether code on the host can use the memory as the device does.
    [[nodiscard]] virtual bool host_reaches_memory() const noexcept = 0;
    /// Whether it is the host's, and CUDA devices copy straight from and to it.
    [[nodiscard]] virtual bool is_pinned() const noexcept { return false; }
    /// @{
    /// Whether the host may touch the memory only while nothing runs on the device (rule O6); waits for what is in the
    /// device's own queues. Throws device_error.
    [[nodiscard]] virtual bool needs_idle_device() const noexcept { return false; }
    virtual void await_idle_device() {}
    /// @}
};

/// A device as its backend sees it.
class driver : public memory_source {
public:
    driver() = default;
    ~driver() override = default;

    /// A queue whose work completes epochs of `line`. `events` must outlive it. Throws std::bad_alloc, device_error.
    [[nodiscard]] virtual std::unique_ptr<queue> make_queue(timeline& line, queue_events& events,
                                                            const queue_options& how) = 0;

    /// @{
    /// A queue that others own, by its handle, and what tells it apart from all others of the device, also from those that
    /// had the handle before. Throws argument_error (no such queue; a device without handles), device_error.
    [[nodiscard]] virtual std::unique_ptr<queue> adopt_queue(void* handle, timeline& line, queue_events& events);
    [[nodiscard]] virtual std::uint64_t identify(void* handle) const;
    /// @}

    /// Whether the body of an operation of the device may be code of the host that does the work itself; else it is to put
    /// the work into the device's queue (detail::task_nature).
    [[nodiscard]] virtual bool runs_host_code() const noexcept { return true; }

    /// Whether queues of this device can wait for work of the device `whose`; null: for a gate. What they cannot wait for,
    /// a forwarding_queue in front of them does.
    [[nodiscard]] virtual bool can_wait_for(const driver* /*whose*/) const noexcept { return true; }

    /// Gives back to the device what the driver keeps of memory that was given back to it. Does not wait.
    virtual void trim() noexcept {}
    /// What a message about memory that is missing should say beside what the pools know: sentences, or nothing.
    [[nodiscard]] virtual std::string about_shortage() const { return {}; }

    /// @{
    /// A point, of no queue, that is over once everything is over that anybody has put into the device up to now; no queue
    /// may wait for it. Empty if the device cannot tell. May end captures of others (rule L5).
    [[nodiscard]] virtual std::optional<point> mark_end_of_all() noexcept { return std::nullopt; }
    /// Blocks until that is so. Whether it is.
    [[nodiscard]] virtual bool await_end_of_all() noexcept { return false; }
    /// @}

    /// Whether a queue that waits for `end` waits for nothing that was submitted after `end`. Blocks for no work and asks no
    /// device; may take a leaf lock of the driver's own.
    [[nodiscard]] virtual bool has_own_end(point /*end*/) const noexcept { return true; }

    /// The device's time. A simulated device under a virtual clock has its own.
    [[nodiscard]] virtual std::chrono::steady_clock::time_point now() const noexcept {
        return std::chrono::steady_clock::now();
    }
    /// Whether that is such a clock. It stays so while operations are pending.
    [[nodiscard]] virtual bool has_virtual_clock() const noexcept { return false; }

    /// Copies memory of the device to the host. Blocks until it is there. Nothing may be writing to `device`.
    virtual void fetch(std::byte* host, const std::byte* device, std::size_t bytes) = 0;
    /// Copies memory of the host to the device. Blocks until it is there. Nothing may be using `device`.
    virtual void store(std::byte* device, const std::byte* host, std::size_t bytes) = 0;

    /// @{
    /// A device that tells nobody when work is over, so that somebody has to look: its timelines are behind until then. Under
    /// no lock of Weir's, since looking completes epochs.
    [[nodiscard]] virtual bool is_asked() const noexcept { return false; }
    /// Looks how far a stream is.
    virtual void look(point /*wanted*/) const noexcept {}
    /// Looks how far all its streams are.
    virtual void look_at_all() const noexcept {}
    /// Looks again and again, for a short time. Whether `wanted` is over.
    [[nodiscard]] virtual bool await(point /*wanted*/) const noexcept { return false; }
    /// An event of the driver's that is over when `wanted` is, or a little later; who holds it keeps it from being used for
    /// something else. Blocks until the driver has the work (rule O9). Null if the device has no such events.
    /// Throws device_error, state_error (in code of a stream, which must not wait for that), std::bad_alloc.
    [[nodiscard]] virtual std::shared_ptr<void> native_event(point /*wanted*/) const { return nullptr; }
    /// Somebody waits: from now on until `wanted` is over, somebody looks.
    virtual void hurry(point /*wanted*/) const noexcept {}
    /// @}
};

}  // namespace weir::backend
