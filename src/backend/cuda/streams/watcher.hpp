#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/cuda/streams/driver_stream.hpp"
#include "backend/fork_gate.hpp"
#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::backend::cuda {

class context_end;

/// The thread that looks for complete operations in streams. It looks now and then while there is work, so that memory, streams and
/// objects owned by operations are released; and continuously while a stream of another backend, a keeper of objects or the host
/// sleeps until an epoch is complete.
class watcher {
public:
    /// The watcher of the process; never destroyed. Its thread ends before the driver does: when the process exits, perhaps before
    /// other static objects are destroyed. If one of their destructors waits, a thread is started again.
    static watcher& instance();

    /// From now on the watcher looks at the stream while it has work.
    void add(driver_stream& one) noexcept;
    /// The same for the end of a context.
    void add(context_end& one) noexcept;
    /// A stream or a thread waits for `at`.
    void hurry(driver_stream& one, epoch at) noexcept;
    /// A thread waits for the end of a context.
    void hurry(context_end& one) noexcept;

    /// While it lives, a thread itself looks for what it waits for. The watcher then leaves the driver's locks to that thread for some
    /// milliseconds, unless another thread or stream waits, too.
    class leave {
    public:
        leave() noexcept { instance().lookers_.fetch_add(1, std::memory_order_relaxed); }
        ~leave() { instance().lookers_.fetch_sub(1, std::memory_order_relaxed); }
        leave(const leave&) = delete;
        leave& operator=(const leave&) = delete;
    };

private:
    watcher();
    void work() noexcept;
    void take_fresh() noexcept;
    [[nodiscard]] bool look_at_all() noexcept;
    void begin();
    void begin_again() noexcept;
    void end() noexcept;

    std::atomic<int> lookers_{0};
    std::uint64_t generation_ = fork_gate::generation();  ///< generation of the process that has the thread
    detail::mutex mutex_;                                 ///< guards what follows; a leaf in the lock order
    detail::condition_variable changed_;
    std::vector<detail::owner<driver_stream>> fresh_;
    std::vector<context_end*> fresh_ends_;
    bool in_a_hurry_ = false;
    bool has_nothing_to_do_ = false;  ///< the thread sleeps until it is notified
    bool is_over_ = false;
    bool has_ended_ = false;
    bool is_gone_ = false;  ///< the thread that ended it has gone on: the next waiting thread starts another one
    // Owned by the watcher's thread.
    std::vector<detail::owner<driver_stream>> driver_streams_;
    std::vector<context_end*> ends_;
};

}  // namespace weir::backend::cuda
