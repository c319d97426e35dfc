// The interface of observers. This folder is below the runtime: it knows positions, waits and footprints, and no stream, lock or device.
// So the runtime, other libraries and tests can all feed observers.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>

#include "frontier/point.hpp"
#include "order/plan.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/detail/site.hpp"
#include "weir/ordering.hpp"
#include "weir/source_location.hpp"

namespace weir::observe {

using runtime::site;
using runtime::work_kind;

/// Whether a stream is a default stream, and of what: it takes work that was given no stream.
enum class default_kind : std::uint8_t {
    none,
    device,  ///< Weir's default stream of the device
    legacy,  ///< the driver's default stream for all threads (handles 0 and 1)
    thread,  ///< the driver's default stream of one thread (handle 2)
};

/// A stream as observers see it. `id` is never reused; `timeline` may be, once all the stream's work is complete.
struct stream_info {
    std::uint64_t id = 0;
    frontiers::timeline_id timeline = 0;
    /// The last epoch of the timeline that belonged to a former stream: points up to it are not this stream's.
    frontiers::epoch before = 0;
    std::string_view name;
    std::string_view device;
    /// The number of the native queue that another library owns; 0 if the stream is Weir's own. The queue may have been adopted before,
    /// as another stream whose work is complete: the queue runs in order all the same.
    std::uint64_t queue = 0;
    /// "legacy" or "blocking" if the device itself orders the stream with streams of the other kind (rule S6); else empty.
    std::string_view order = {};
    default_kind default_of = default_kind::none;
    /// The library whose stream it is, such as "torch", if the library's hooks report it; else empty.
    std::string_view package = {};
    /// What the driver calls the queue; 0 if that is not known. A stream of Weir's and one of a library with the same handle on the same
    /// device are one queue, which runs in order.
    std::uint64_t handle = 0;
};

/// When an operation ran: two readings of its device's clock.
struct observed_execution {
    frontiers::point which;
    std::chrono::steady_clock::time_point start;
    std::chrono::steady_clock::time_point end;
    bool virtual_clock = false;  ///< the clock is the device's own (backend::driver::now), not the steady one
};

/// A driver's handle as stream_info has it: the legacy default stream has two, and that of the default streams of threads is not one queue.
[[nodiscard]] inline std::uint64_t handle_of_queue(std::uint64_t native) noexcept {
    return native == 2 ? 0 : std::max<std::uint64_t>(native, 1);
}

/// What is known of an access before it happens.
enum class certainty : std::uint8_t {
    definite,  ///< it touches all of its footprint
    possible,  ///< it may touch it: the footprint is larger than what is used, or opaque code decides
};

/// Memory that Weir and another library both know, each by a number of its own.
enum class sharing : std::uint8_t {
    none,      ///< it is not shared, or that is not known
    imported,  ///< Weir reports it; it is the library's
    lent,      ///< Weir reports it, and it is Weir's
    theirs,    ///< the library's hooks report it
};

/// One access of an operation, or of the host.
struct observed_access {
    std::uint64_t resource = 0;  ///< a number for the memory, never reused for other memory
    std::uint64_t bytes = 0;     ///< size of the whole resource
    order::footprint where;
    order::access_mode mode = order::access_mode::read;
    ordering_mode ordering = ordering_mode::automatic;  ///< whether Weir or the program orders this access (rule O5)
    bool is_internal = false;  ///< Weir orders it in every mode: memory that is internal to Weir, a protocol's argument
    certainty touches = certainty::definite;
    const char* token = nullptr;  ///< the name of a token, which may be empty; null if it is memory
    sharing shared = sharing::none;
    std::uint64_t address = 0;  ///< where the resource begins, if it is shared: the same in Weir and in the library
};

/// A wait that was issued. `hazard_of_manual`: only accesses that the program orders itself need it; it was inserted because an observer
/// asked for safety.
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
    std::span<const frontiers::point> after;  ///< the dependencies that the program declared
    std::span<const observed_wait> waits;
    std::span<const order::elision> elisions;
    /// The ends that packages sharing memory had reached in their streams, for accesses that Weir orders: the operation comes after
    /// them, whether that took a wait or not (rules X6, X7).
    std::span<const frontiers::point> entries = {};
};

/// What became of a wait that the program asked for, or of one that its devices make implicitly.
enum class wait_made : std::uint8_t {
    issued,     ///< the wait was needed
    implied,    ///< earlier order implied the wait, or its target was complete
    by_device,  ///< the program did not ask for it: the device itself orders these streams (rule S6)
};

/// Memory, or what is tracked like memory, has a new owner.
struct observed_allocation {
    std::uint64_t resource = 0;  ///< as in observed_access
    std::uint64_t bytes = 0;     ///< the size that the owner asked for
    std::string_view device;     ///< the device whose memory it is
    /// Where the memory begins: a number that stays the same as long as it has an owner. Two successive owners on one device share
    /// memory exactly where their ranges [address, address + bytes) overlap. 0: the resource is not memory.
    std::uint64_t address = 0;
    const stream_info* stream = nullptr;  ///< the stream it was allocated on; null if there was none
    source_location from;
    sharing shared = sharing::none;
};

/// Receives what happens, in an order that agrees with every stream's order and with the order in which conflicting operations were
/// enqueued. `check` and `trace` are observers; the code that feeds them knows nothing else of them.
///
/// Called under locks of Weir (buffers, streams): must not call back into Weir, must not block on anything but a lock of its own, and
/// must not run code of the user's. Spans and pointers are valid during the call only. The calling thread is the thread that acts,
/// except for `executed`; `acting_for` says for which operation it acts.
class observer {
public:
    observer() = default;
    observer(const observer&) = delete;
    observer& operator=(const observer&) = delete;
    virtual ~observer() = default;

    /// Whether hazard waits are inserted even where the program has chosen to order its operations itself (rule V1: `check` keeps the
    /// program safe).
    [[nodiscard]] virtual bool wants_safety() const noexcept { return false; }
    /// Whether `executed` is wanted, which costs two readings of the clock for each operation.
    [[nodiscard]] virtual bool wants_times() const noexcept { return false; }

    /// A stream was made, or existed already when the observer was added. May be called more than once for a stream.
    virtual void stream_made(const stream_info&) {}
    /// The last owner of a stream dropped it, and all its work is complete, up to `last`. Not called for a stream that did nothing.
    virtual void stream_gone(const stream_info&, frontiers::point /*last*/) {}
    virtual void operation(const observed_operation&) {}
    /// An event was recorded: it holds `at`. `event` is 0 for a recording without an event object.
    virtual void event_recorded(std::uint64_t /*event*/, const stream_info&, frontiers::point /*at*/,
                                const source_location&) {}
    /// The program made a stream wait for a point, through event `event` if not 0. The wait is the stream's epoch `at`.
    virtual void stream_waits(const stream_info&, frontiers::epoch /*at*/, frontiers::point /*target*/,
                              std::uint64_t /*event*/, wait_made /*how*/, const source_location&) {}
    /// The calling thread knows, by a wait that returned or by a question answered "done", that `target` is complete.
    virtual void host_waited(frontiers::point /*target*/, const source_location&) {}
    /// The calling thread has waited for a device. For each living stream, `host_waited` was called before. Streams reported by
    /// `stream_gone` are complete, too: what an observer concludes from the wait must not depend on whether a dropped stream still
    /// happened to be busy.
    virtual void device_waited(std::string_view /*device*/, const source_location&) {}
    /// The calling thread has waited, by another library, for everything that any stream of the device had got, those of Weir among them.
    virtual void device_finished(std::string_view /*device*/) {}
    /// The host itself reads or changes a resource; Weir has waited for conflicting operations.
    virtual void host_access(const observed_access&, const source_location&) {}
    /// The calling thread has asked whether anything pending conflicts with such an access, and the answer was no.
    virtual void host_found_ready(const observed_access&) {}
    /// For the host access that follows, which Weir orders, Weir has waited for everything that a package sharing the memory had put into
    /// its stream.
    virtual void host_met_package(frontiers::point /*entry*/) {}
    /// A package has used a resource that it shares, up to `at` on a stream: conflicting accesses that Weir orders come after that (rule
    /// X7).
    virtual void package_used(std::uint64_t /*resource*/, const order::footprint& /*where*/,
                              order::access_mode /*mode*/, frontiers::point /*at*/) {}
    /// Weir shares a resource with another library from now on.
    virtual void shares(std::uint64_t /*resource*/, std::uint64_t /*bytes*/, sharing /*how*/,
                        std::uint64_t /*address*/) {}
    /// A resource has a new owner.
    virtual void allocated(const observed_allocation&) {}
    /// One of the resource's owners lets go, on the calling thread; called for each owner, before it lets go, including the last one.
    virtual void released(std::uint64_t /*resource*/) {}
    /// The memory's allocator keeps it, when its last owner drops it, until everything that the stream has got by then is complete.
    virtual void kept_until(std::uint64_t /*resource*/, const stream_info&) {}
    /// Something that happens and is not reported, in words.
    virtual void unseen(std::string_view /*what*/) {}
    /// The resource's last owner dropped it, on the calling thread: nothing can use it any more, and its memory may get a new owner from
    /// now on. The place in the program is not known.
    virtual void dropped(std::uint64_t /*resource*/) {}
    /// An operation failed, or did not run because something that it depends on had failed (rule K4). Called before the operation is
    /// complete, on the thread that would have run it.
    virtual void failed(frontiers::point /*which*/) noexcept {}
    /// An operation ran, on the calling thread. Called before the operation is complete.
    virtual void executed(const observed_execution&) noexcept {}
};

}  // namespace weir::observe
