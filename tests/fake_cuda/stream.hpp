// Streams: queues with a thread each.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda.hpp"

namespace weir_fake {

/// How far a stream is. Outlives it in events that were recorded there, so that these need not keep the stream.
struct stream_progress {
    std::uint64_t completed = 0;
    std::condition_variable changed;  ///< for threads that wait for the stream
};

/// A point of a stream: all of its entries up to this one.
struct point {
    std::shared_ptr<stream_progress> of;
    std::uint64_t position = 0;
    [[nodiscard]] bool reached() const;
};

/// A record of an event.
struct recording {
    point at;
    std::int64_t nanoseconds = 0;  ///< when it completed
};

struct entry {
    std::vector<point> after;
    /// Run by the stream's thread, without the lock. Returns the sticky error that it causes.
    std::function<CUresult()> work;
};

/// How many entries wait in a stream before a call that adds one blocks.
inline constexpr std::size_t queue_length = 1024;

enum class stream_kind { user, legacy, per_thread, recorder };

/// Guarded by the driver's lock.
struct stream {
    context* in = nullptr;
    stream_kind kind = stream_kind::user;
    unsigned flags = 0;
    int priority = 0;
    unsigned long long id = 0;
    bool held = false;       ///< its thread begins nothing
    bool destroyed = false;  ///< its thread ends when the queue is empty
    bool started = false;
    std::shared_ptr<capture> captured;  ///< the capture that records the stream's entries; null: they run
    std::uint64_t submitted = 0;
    std::shared_ptr<stream_progress> progress = std::make_shared<stream_progress>();
    std::deque<entry> queue;
    std::condition_variable to_do;  ///< for the stream's thread: a new entry, or the stream was opened

    [[nodiscard]] bool blocking() const {
        return kind == stream_kind::per_thread || (kind == stream_kind::user && (flags & stream_non_blocking) == 0);
    }
};

std::shared_ptr<stream> make_stream(context& in, stream_kind kind, unsigned flags, int priority);

/// Adds work behind everything that the stream must follow, and returns its position. Blocks while the queue is full, with the
/// lock released.
point enqueue(std::unique_lock<std::mutex>& held, const std::shared_ptr<stream>& on, entry what);
/// Waits until the point is reached, or the stream's context is broken, with the lock released.
void wait_for(std::unique_lock<std::mutex>& held, const point& what);
/// Whether nothing is left in the stream, or its next entry waits for another stream. Changes to true only with its progress.
bool is_settled(const stream& what);
/// Everything that the stream has now.
point tail(const std::shared_ptr<stream>& of);

/// Records in `on`: after everything that it has now, and `after`.
std::shared_ptr<recording> record(std::unique_lock<std::mutex>& held, const std::shared_ptr<stream>& on,
                                  std::vector<point> after = {});
/// Wakes all threads that wait for a stream, after a change that is not progress.
void wake_all();

/// Whether there was a sticky error. For work that polls; takes the lock.
bool is_broken();

}  // namespace weir_fake
