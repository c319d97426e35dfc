#pragma once

#include <cstdint>
#include <optional>

#include "weir/device.hpp"
#include "weir/source_location.hpp"
#include "weir/stream.hpp"

namespace weir::runtime {

/// Streams that belong to another stream, their `owner`: their work lies between two moments of the owner's. A side stream is kept
/// for the next use by the same owner; that use comes after all the side stream's work in any case, so no order is added that is
/// not needed. Never blocks; any thread.
class side_streams {
public:
    /// A stream of `on` with the owner's priority that was given back, or a new one with that name. Throws std::bad_alloc.
    [[nodiscard]] static stream take(const stream_ref& owner, const weir::device& on, const char* suffix);
    /// Gives `one` back. The owner must already wait for all its work.
    static void give_back(const stream_ref& owner, const stream& one) noexcept;
    /// Drops the streams that were given back, as the stream with the unique id `owner` is gone. Called under no lock.
    static void forget(std::uint64_t owner) noexcept;
};

/// A stream for steps of one call that must run on another device than the call's stream (rule O5). It starts after everything that
/// was enqueued into the call's stream before, and the call's stream continues after it. It is Weir's own, so a call waits for no
/// stream that it was not given, and delays none. Device-side; one thread.
class side_stream {
public:
    /// `owner` must outlive this. Throws state_error if it is closed, std::bad_alloc.
    side_stream(const stream_ref& owner, const weir::device& on, const source_location& where);
    /// Joins, if `join` was not called because a step could not be enqueued. If that fails as well, the calling thread waits.
    ~side_stream();
    side_stream(const side_stream&) = delete;
    side_stream& operator=(const side_stream&) = delete;

    [[nodiscard]] const stream& operator*() const noexcept { return *stream_; }
    /// The owner continues after all work of this stream, which must not be used any more. Throws state_error, std::bad_alloc.
    void join();

private:
    stream_ref owner_;
    source_location where_;
    std::optional<stream> stream_;
};

}  // namespace weir::runtime
