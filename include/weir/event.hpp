// Events. Layer: runtime.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "weir/completion.hpp"
#include "weir/export.hpp"
#include "weir/source_location.hpp"
#include "weir/stream.hpp"

namespace weir {

namespace runtime {
struct event_state;
}

/// Options of an event.
struct event_options {
    /// Its records note the device's time; each record then takes an epoch of its own in the stream.
    bool timing = false;
};

/// A marker for a moment in a stream (rule S2). Copies are the same event. An event that was never recorded is complete, and a wait for it
/// has no effect. Any thread may use it.
class WEIR_EXPORT event {
public:
    /// Not recorded yet. Throws std::bad_alloc.
    event();
    /// The same with options: `event({.timing = true})`. Throws std::bad_alloc.
    explicit event(event_options options);
    /// The event of an operation that was enqueued. Throws std::bad_alloc.
    event(const completion& of);  // NOLINT(google-explicit-constructor): an operation's end *is* an event

    /// Records the tail of `on` at this moment, in place of what was recorded before. Does not block, except on devices without queues.
    /// Throws state_error if the stream is closed, std::bad_alloc: the event is then unchanged.
    void record(const stream_ref& on, source_location where = source_location::current());

    /// Blocks the calling thread until the recorded moment is complete (rule S3). Throws operation_error as completion::synchronize does
    /// if it is an operation's event, and as stream::synchronize does if it was recorded on a stream (rule K4).
    void wait(source_location where = source_location::current()) const;
    /// Device-side: `waiter.wait(*this)`. Does not block the caller (rule S3). Throws as stream_ref::wait does.
    void wait(const stream_ref& waiter, source_location where = source_location::current()) const;
    /// The same as wait().
    void synchronize(source_location where = source_location::current()) const { wait(where); }

    /// Whether the recorded moment is complete. Never blocks. An answer of true orders what the program does next (rule V1).
    [[nodiscard]] bool done(source_location where = source_location::current()) const;

    /// The milliseconds from the moment recorded here to the moment recorded in `end`, by the clock of their device (under a virtual
    /// clock, a simulated device has its own); negative if `end` came first. Both events must be timed, recorded, complete, and of one
    /// device: else throws state_error. Never blocks.
    [[nodiscard]] double elapsed_ms(const event& end) const;
    /// Whether it was made with timing.
    [[nodiscard]] bool is_timed() const noexcept;

    /// The driver's event for the recorded moment, a CUevent, for waiting and querying, not for recording. It is made at the first call,
    /// so it completes with the recorded moment or a little later. Null if nothing was recorded, or on devices without such events. Valid
    /// until this event is recorded again or destroyed. Blocks while the work waits for another device (rule O9). Throws device_error,
    /// state_error (in a host task, which must not wait for that), std::bad_alloc.
    [[nodiscard]] void* handle() const;

    /// The last recorded moment; empty if nothing was recorded. Never blocks on a device.
    [[nodiscard]] completion recorded() const;

    /// Unlike an address, never reused for another event.
    [[nodiscard]] std::uint64_t unique_id() const noexcept;
    /// `<weir.event #7 timed on cpu, not over>`. Never blocks.
    [[nodiscard]] std::string to_string() const;

private:
    std::shared_ptr<runtime::event_state> state_;
};

}  // namespace weir
