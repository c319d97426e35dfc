#pragma once

#include <optional>

#include "weir/device.hpp"
#include "weir/source_location.hpp"
#include "weir/stream.hpp"

namespace weir::runtime {

/// Streams that belong to another one, their `owner`: what they do lies between two moments of the owner's. They are kept for the
/// next use by the same owner, which is after all they did anyway, so nothing is ordered that need not be. Never blocks; any thread.
class side_streams {
public:
    /// One of `on` with the owner's priority that was given back, or a new one with that name. Throws std::bad_alloc.
    [[nodiscard]] static stream take(const stream_ref& owner, const weir::device& on, const char* suffix);
    /// The owner waits for all that was put into it.
    static void give_back(const stream_ref& owner, const stream& one) noexcept;
};

/// A stream for steps of one call that the call's stream cannot take, since they belong on another device (rule O5): it starts
/// after all that the call's stream was given before, and the call's stream goes on after it. Weir's own, so that a call waits for
/// no stream that it was not given, and delays none. Device-side; one thread.
class side_stream {
public:
    /// `owner` must outlive this. Throws state_error if it is closed, std::bad_alloc.
    side_stream(const stream_ref& owner, const weir::device& on, const source_location& where);
    /// Joins, if that was not done because a step could not be enqueued. Where that fails as well, the calling thread waits.
    ~side_stream();
    side_stream(const side_stream&) = delete;
    side_stream& operator=(const side_stream&) = delete;

    [[nodiscard]] const stream& operator*() const noexcept { return *stream_; }
    /// The owner goes on after all that was put into it, which is not to be used any more. Throws state_error, std::bad_alloc.
    void join();

private:
    stream_ref owner_;
    source_location where_;
    std::optional<stream> stream_;
};

}  // namespace weir::runtime
