// Events, as Python knows them.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "bind.hpp"
#include "weir/completion.hpp"
#include "weir/device.hpp"
#include "weir/event.hpp"
#include "weir/stream.hpp"

namespace weir::python {

/// weir::event, which may be closed, and which knows a device before it was recorded. For an operation it holds only the operation's
/// end until a caller asks for more, which most programs never do. Any number of threads may use one (free-threaded interpreters).
class py_event {
public:
    /// Not recorded yet. Throws std::bad_alloc.
    py_event(device on, bool timing) : event_(event(event_options{timing})), device_(on) {}
    /// Recorded on a stream of `on`.
    py_event(event recorded, device on) noexcept : event_(std::move(recorded)), device_(on) {}
    /// The end of an operation on a stream of `on`. Throws std::bad_alloc.
    py_event(completion end, device on);

    /// The event. Throws state_error if it is closed, std::bad_alloc. Needs the GIL.
    [[nodiscard]] const event& get() const;
    /// What was recorded last. Throws state_error if it is closed.
    [[nodiscard]] completion recorded() const;
    /// Without the GIL while it records. Throws state_error.
    void record(const stream& on, const source_location& where);
    /// Where it was recorded last, or is to be.
    [[nodiscard]] device where() const noexcept { return std::atomic_ref(device_).load(std::memory_order_relaxed); }
    void close() noexcept { std::atomic_ref(is_open_).store(false, std::memory_order_relaxed); }
    [[nodiscard]] bool is_open() const noexcept { return std::atomic_ref(is_open_).load(std::memory_order_relaxed); }
    [[nodiscard]] std::string to_string() const;
    [[nodiscard]] bool is_same(const py_event& other) const { return unique_id() == other.unique_id(); }
    [[nodiscard]] std::uint64_t unique_id() const { return made().unique_id(); }

private:
    void expect_open() const;
    /// The event of an operation is made here, at the first call.
    const event& made() const;

    mutable std::optional<event> event_;
    completion end_;  ///< of an operation, while there is no event
    mutable device device_;
    mutable bool is_open_ = true;
};

/// An object for `made`: a new one, or the object that the thread got last, if no other reference to it is left. So a program that drops
/// the events of what it enqueues makes one object for all of them.
[[nodiscard]] nb::object object_for(py_event made);

/// The event of an operation that was just enqueued on a stream of `on`.
[[nodiscard]] inline nb::object event_of(const completion& done, const stream_ref& on) {
    return object_for({done, on.device()});
}

/// Drops what the calling thread remembers: at the interpreter's exit.
void forget_last_event() noexcept;

}  // namespace weir::python
