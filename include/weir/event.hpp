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

/// How to make an event.
struct event_options {
    bool timing = false;  ///< its records note the device's time; each then takes a place in the stream of its own
};

/// A marker for a moment in a stream (rule S2). Copies are the same event. An event never recorded is complete, and
/// waiting for it is no wait. Any thread may use it.
class WEIR_EXPORT event {
public:
    /// Not recorded yet. Throws std::bad_alloc.
    event();
    /// The same with options: `event({.timing = true})`. Throws std::bad_alloc.
    explicit event(event_options options);
    /// The event of an operation that was just enqueued. Throws std::bad_alloc.
    event(const completion& of);  // NOLINT(google-explicit-constructor): an operation's end *is* an event

    /// Holds from now on the tail of `on` at this moment, whatever it held before. Does not block, but on devices without
    /// queues. Throws state_error if the stream is closed, std::bad_alloc: then it holds what it held before.
    void record(const stream_ref& on, source_location where = source_location::current());

    /// Blocks the calling thread until the recorded moment is over (rule S3). Throws operation_error as completion::synchronize
    /// does if it is an operation's event, and as stream::synchronize does if it was recorded on a stream (rule K4).
    void wait(source_location where = source_location::current()) const;
    /// Device-side: `waiter.wait(*this)`. Does not block the caller (rule S3). Throws as stream_ref::wait does.
    void wait(const stream_ref& waiter, source_location where = source_location::current()) const;
    /// The same as wait().
    void synchronize(source_location where = source_location::current()) const { wait(where); }

    /// Whether the recorded moment is over. Never blocks. true orders what the program does next (rule V1).
    [[nodiscard]] bool done(source_location where = source_location::current()) const;

    /// The milliseconds from the moment recorded here to the one recorded in `end`, by the clock of their device (a
    /// simulated device under a virtual clock has its own); negative if `end` came first. Both must be timed, recorded and
    /// over, and of one device: else state_error. Never blocks.
    [[nodiscard]] double elapsed_ms(const event& end) const;
    /// Whether it was made with timing.
    [[nodiscard]] bool is_timed() const noexcept;

    /// The driver's event that is over when the recorded moment is, or a little later, since it is made when it is first asked
    /// for: a CUevent, to wait for or to ask, not to record. Null if nothing was recorded, or on devices without such events.
    /// Good until this event is recorded again, or gone. Blocks while the work waits for another device (rule O9). Throws
    /// device_error, state_error (in a host task, which must not wait for that), std::bad_alloc.
    [[nodiscard]] void* native_handle() const;

    /// What was recorded last. Empty if nothing was. Never blocks on a device.
    [[nodiscard]] completion recorded() const;

    /// Unlike an address, never used again for another event.
    [[nodiscard]] std::uint64_t unique_id() const noexcept;
    /// `<weir.event #7 timed on cpu, not over>`. Never blocks.
    [[nodiscard]] std::string to_string() const;

private:
    std::shared_ptr<runtime::event_state> state_;
};

}  // namespace weir
