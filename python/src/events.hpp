// Events, as Python knows them.
#pragma once

#include <optional>
#include <string>

#include "bind.hpp"
#include "weir/device.hpp"
#include "weir/event.hpp"
#include "weir/stream.hpp"

namespace weir::python {

/// weir::event, which may be closed, and which knows a device before it was recorded.
class py_event {
public:
    /// Not recorded yet. Throws std::bad_alloc.
    py_event(device on, bool timing) : event_(event_options{timing}), device_(on) {}
    /// Recorded on a stream of `on`.
    py_event(event recorded, device on) noexcept : event_(std::move(recorded)), device_(on) {}

    /// The event. Throws state_error if it is closed.
    [[nodiscard]] const event& get() const;
    /// Without the GIL while it records. Throws state_error.
    void record(const stream& on, const source_location& where);
    /// Where it was recorded last, or is to be.
    [[nodiscard]] const device& where() const noexcept { return device_; }
    void close() noexcept { is_open_ = false; }
    [[nodiscard]] bool is_open() const noexcept { return is_open_; }
    [[nodiscard]] std::string to_string() const;
    [[nodiscard]] bool is_same(const py_event& other) const noexcept {
        return event_.unique_id() == other.event_.unique_id();
    }
    [[nodiscard]] std::uint64_t unique_id() const noexcept { return event_.unique_id(); }

private:
    event event_;
    device device_;
    bool is_open_ = true;
};

/// An object for `made`: a new one, or the one that the thread got last, if nobody has that any more. So a program that drops
/// the events of what it enqueues makes one object for all of them.
[[nodiscard]] nb::object object_for(py_event made);

/// The event of an operation that was just enqueued on a stream of `on`.
[[nodiscard]] inline nb::object event_of(const completion& done, const stream_ref& on) {
    return object_for({event(done), on.device()});
}

/// Lets go of what the calling thread remembers: at the interpreter's exit.
void forget_last_event() noexcept;

}  // namespace weir::python
