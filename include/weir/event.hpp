// Events. Layer: runtime.
#pragma once

#include <memory>

#include "weir/completion.hpp"
#include "weir/export.hpp"
#include "weir/source_location.hpp"
#include "weir/stream.hpp"

namespace weir {

namespace runtime {
struct event_state;
}

/// A marker for a moment in a stream (rule S2). Copies are the same event. An event never recorded is complete, and
/// waiting for it is no wait. Any thread may use it.
class WEIR_EXPORT event {
public:
    event();
    /// The event of an operation that was just enqueued.
    event(const completion& of);  // NOLINT(google-explicit-constructor): an operation's end *is* an event

    /// Holds from now on the tail of `on` at this moment, whatever it held before. Does not block. Throws state_error
    /// if the stream is closed.
    void record(const stream_ref& on, source_location where = source_location::current());

    /// Blocks the calling thread until the recorded moment is over. Throws operation_error as stream::synchronize does.
    void wait(source_location where = source_location::current()) const;
    /// Device-side: `waiter.wait(*this)`.
    void wait(const stream_ref& waiter, source_location where = source_location::current()) const;
    /// The same as wait().
    void synchronize(source_location where = source_location::current()) const { wait(where); }

    /// Whether the recorded moment is over. Never blocks. true orders what the program does next (rule V1).
    [[nodiscard]] bool done(source_location where = source_location::current()) const;

    /// What was recorded last. Empty if nothing was.
    [[nodiscard]] completion recorded() const;

    /// For Weir's own use.
    [[nodiscard]] std::uint64_t unique_id() const noexcept;

private:
    std::shared_ptr<runtime::event_state> state_;
};

}  // namespace weir
