#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/acting.hpp"
#include "order/plan.hpp"
#include "weir/completion.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/detail/site.hpp"
#include "weir/ordering.hpp"
#include "weir/source_location.hpp"

namespace weir::runtime {

/// Whose work a stream takes that was given no stream.
enum class default_kind : std::uint8_t {
    none,
    device,  ///< Weir's: its default stream of the device
    legacy,  ///< the driver's for all threads (handles 0 and 1)
    thread,  ///< the driver's for one thread (handle 2)
};

/// A stream as observers see it. `id` is never used again; `timeline` may be, once all its work is over.
struct stream_info {
    std::uint64_t id = 0;
    frontiers::timeline_id timeline = 0;
    /// The last epoch of the timeline that belonged to a former stream: points up to it are not this stream's.
    frontiers::epoch before = 0;
    std::string_view name;
    std::string_view device;
    /// native_queue::unique_id of a queue of somebody else's; 0 if the stream is Weir's own. The queue may have been adopted
    /// before, as another stream, whose work is over: it runs in order all the same.
    std::uint64_t queue = 0;
    /// "legacy" or "blocking" if the device itself orders it with streams of the other kind (rule S6); else empty.
    std::string_view order = {};
    default_kind default_of = default_kind::none;
};

/// When an operation ran, by two readings of its device's clock.
struct observed_execution {
    frontiers::point which;
    std::chrono::steady_clock::time_point start;
    std::chrono::steady_clock::time_point end;
    bool virtual_clock = false;  ///< the device's own (backend::driver::now), not the steady one
};

struct observed_access {
    std::uint64_t resource = 0;  ///< resource::id
    std::uint64_t bytes = 0;     ///< size of the whole resource
    order::footprint where;
    order::access_mode mode = order::access_mode::read;
    ordering_mode ordering = ordering_mode::automatic;  ///< who orders this access (rule O5)
    bool is_internal = false;                           ///< of memory that only Weir knows
};

/// A wait that was issued. `hazard_of_manual`: it was needed only by accesses that the program orders itself, and was
/// inserted because an observer asked for safety.
struct observed_wait {
    frontiers::point target;
    order::reason why = order::reason::dependency;
    bool hazard_of_manual = false;
};

struct observed_operation {
    const stream_info* stream = nullptr;
    frontiers::epoch epoch = 0;
    site from;
    work_kind kind = work_kind::device;
    std::span<const observed_access> accesses;
    std::span<const completion> after;
    std::span<const observed_wait> waits;
    std::span<const order::elision> elisions;
    /// Up to where the packages that share memory had put work into their streams, of those that the accesses left to Weir
    /// come after: whether that took a wait or not (rules X6, X7).
    std::span<const frontiers::point> entries = {};
};

/// What became of a wait that the program asked for, or of one that its devices make by themselves.
enum class wait_made : std::uint8_t {
    issued,     ///< it was missing
    implied,    ///< it was implied by earlier order, or its target was over
    by_device,  ///< nobody asked: the device itself orders these streams (rule S6)
};

/// Memory, or what is tracked like memory, has a new owner.
struct observed_allocation {
    std::uint64_t resource = 0;  ///< resource::id
    std::uint64_t bytes = 0;     ///< what the owner asked for
    std::string_view device;     ///< whose memory it is
    /// Where it begins, a number that stays the same as long as somebody owns it. Owners on one device that come one after
    /// the other share memory exactly where their ranges [address, address + bytes) overlap. 0: it is no memory.
    std::uint64_t address = 0;
    const stream_info* stream = nullptr;  ///< the stream it was allocated on; null if there was none
    source_location from;
};

/// For which operation the calling thread acts: it runs its body, or destroys what was kept until it was over. Epoch 0:
/// for none, but for the program itself.
[[nodiscard]] inline frontiers::point acting() noexcept { return backend::acting_for::current(); }

/// What happens, told in an order that agrees with every stream's order and with the order in which conflicting
/// operations were enqueued. `check` and `trace` are observers; the runtime knows nothing else of them.
///
/// Called under locks of Weir (buffers, streams): must not call back into Weir, must not block on anything but a lock of
/// its own, and runs no code of the user's. Spans and pointers are valid during the call only. The thread that acts is the
/// calling thread, but for `executed`; `acting` says for whom.
class observer {
public:
    observer() = default;
    observer(const observer&) = delete;
    observer& operator=(const observer&) = delete;
    virtual ~observer() = default;

    /// Whether hazard waits are inserted although the program chose to order its operations itself (rule V1: `check`
    /// keeps the program safe).
    [[nodiscard]] virtual bool wants_safety() const noexcept { return false; }
    /// Whether `executed` is wanted: costs two readings of the clock for each operation.
    [[nodiscard]] virtual bool wants_times() const noexcept { return false; }

    /// A stream was made, or lived already when the observer was added. May be told more than once.
    virtual void stream_made(const stream_info&) {}
    /// The last owner of a stream dropped it, and all its work is over, up to `last`. Not told of a stream that did nothing.
    virtual void stream_gone(const stream_info&, frontiers::point /*last*/) {}
    virtual void operation(const observed_operation&) {}
    /// An event was recorded: it holds `at`.
    virtual void event_recorded(std::uint64_t /*event*/, const stream_info&, frontiers::point /*at*/,
                                const source_location&) {}
    /// The program made a stream wait for a point, through event `event` if not 0. The wait is the stream's epoch `at`.
    virtual void stream_waits(const stream_info&, frontiers::epoch /*at*/, frontiers::point /*target*/,
                              std::uint64_t /*event*/, wait_made /*how*/, const source_location&) {}
    /// The calling thread knows by a wait that returned, or a question answered "done", that `target` is over.
    virtual void host_waited(frontiers::point /*target*/, const source_location&) {}
    /// The calling thread has waited for a device. For the streams that live, `host_waited` was told before. Those of which
    /// `stream_gone` was told are over, too: what an observer concludes from the wait must not depend on whether a stream
    /// that was dropped happened to be busy still.
    virtual void device_waited(std::string_view /*device*/, const source_location&) {}
    /// The host reads or changes a resource itself; Weir has waited for what conflicts.
    virtual void host_access(const observed_access&, const source_location&) {}
    /// For the access of the host's that follows, which is left to Weir, it has waited for all that a package which shares
    /// the memory had put into its stream.
    virtual void host_met_package(frontiers::point /*entry*/) {}
    /// A package has used a resource that it shares, up to `at` on a stream: conflicting accesses that are left to Weir
    /// come after (rule X7).
    virtual void package_used(std::uint64_t /*resource*/, const order::footprint& /*where*/,
                              order::access_mode /*mode*/, frontiers::point /*at*/) {}
    /// A resource has a new owner.
    virtual void allocated(const observed_allocation&) {}
    /// One of its owners lets go, on the calling thread; told before each, the last one included.
    virtual void released(std::uint64_t /*resource*/) {}
    /// Its last owner dropped it, on the calling thread: nobody can use it any more, and its memory may get a new owner
    /// from now on. Where in the program that was is not known.
    virtual void dropped(std::uint64_t /*resource*/) {}
    /// An operation failed, or did not run because something that it depends on had failed (rule K4). Told before it is
    /// over, on the thread that would have run it.
    virtual void failed(frontiers::point /*which*/) noexcept {}
    /// An operation ran, on the calling thread. Told before it is over.
    virtual void executed(const observed_execution&) noexcept {}
};

/// What observers have to say to the program, kept for the calling thread until its call holds no lock any more.
///
/// Observers are told under locks, where nothing may block and nothing may be thrown. So they leave here what they want
/// told or thrown, and each call of Weir that tells observers of an operation or of an access of the host's ends with
/// `settle`. By then the operation is enqueued and every lock is released: nothing is half done.
class verdicts {
public:
    /// What texts are handed to, under no lock, on the thread that left them. It must not throw.
    using teller = std::function<void(const std::string&)>;
    /// Has `to` told of `text`; null: has it written to the standard error output. May throw std::bad_alloc.
    static void tell_later(std::shared_ptr<const teller> to, std::string text) {
        pending().notes.push_back({std::move(to), std::move(text)});
    }
    /// Has `why` thrown. The first one wins.
    static void raise_later(std::exception_ptr why) noexcept {
        if (!pending().raise) {
            pending().raise = std::move(why);
        }
    }
    /// Tells, then throws, what was left on this thread. Call with no lock held, as the last step of a call.
    static void settle() {
        if (pending().any()) {
            settle_now();
        }
    }

private:
    struct note {
        std::shared_ptr<const teller> to;
        std::string text;
    };
    struct verdict {
        std::vector<note> notes;
        std::exception_ptr raise;
        [[nodiscard]] bool any() const noexcept { return !notes.empty() || raise != nullptr; }
    };
    static verdict& pending() noexcept {
        static thread_local verdict one;
        return one;
    }
    static void settle_now();
};

/// The process's observers, at most `most` at a time.
class observers {
public:
    static constexpr std::size_t most = 8;

    /// From when on `add` has returned, the observer hears of everything, and has heard of all streams that live. Throws
    /// state_error if there are too many, std::bad_alloc.
    static void add(observer& one);
    /// From when on `remove` has returned, the observer hears of nothing.
    static void remove(observer& one) noexcept;

    /// Whether there is any. The one question on the hot path.
    [[nodiscard]] static bool any() noexcept { return count_.load(std::memory_order_relaxed) != 0; }
    [[nodiscard]] static bool want_safety() noexcept { return safety_.load(std::memory_order_relaxed) != 0; }
    [[nodiscard]] static bool want_times() noexcept { return times_.load(std::memory_order_relaxed) != 0; }

    /// Calls `tell(observer&)` for each.
    template <class Tell>
    static void tell(Tell&& tell) noexcept {
        if (any()) {
            const std::shared_lock lock(mutex_);
            for (observer* one : list_) {
                if (one != nullptr) {
                    tell(*one);
                }
            }
        }
    }

private:
    static void enter(observer& one);

    static inline detail::shared_mutex mutex_;  ///< guards list_; last in the lock order but for the observers' own
    static inline observer* list_[most] = {};
    static inline std::atomic<int> count_{0};
    static inline std::atomic<int> safety_{0};
    static inline std::atomic<int> times_{0};
};

}  // namespace weir::runtime
