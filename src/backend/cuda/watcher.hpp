#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/cuda/lane.hpp"
#include "backend/fork_gate.hpp"
#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::backend::cuda {

class context_end;

/// The thread that looks how far the streams are: now and then while there is work, so that memory, streams and what
/// operations own come back; again and again while somebody sleeps until an epoch is over (a stream of another backend,
/// a keeper of objects, the host).
class watcher {
public:
    /// The one of the process; never destroyed. Its thread ends before the driver does: when the process exits, perhaps before
    /// other static objects go. While a destructor of these waits, there is a thread again.
    static watcher& instance();

    /// From now on the stream is looked at while it has work.
    void add(lane& one) noexcept;
    /// The same for the end of a context.
    void add(context_end& one) noexcept;
    /// Somebody waits for `at`.
    void hurry(lane& one, epoch at) noexcept;
    /// Somebody waits for the end of a context.
    void hurry(context_end& one) noexcept;

    /// While it lives, a thread looks itself for what it waits for: the watcher leaves the driver's locks to it for some
    /// milliseconds, unless somebody else waits.
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
    std::uint64_t generation_ = fork_gate::generation();  ///< whose the thread is
    detail::mutex mutex_;                                 ///< guards what follows; a leaf in the lock order
    detail::condition_variable changed_;
    std::vector<detail::owner<lane>> fresh_;
    std::vector<context_end*> fresh_ends_;
    bool in_a_hurry_ = false;
    bool has_nothing_to_do_ = false;  ///< the thread sleeps until it is told
    bool is_over_ = false;
    bool has_ended_ = false;
    bool is_gone_ = false;  ///< and whoever ended it has gone on: the next who waits starts another one
    // Of its thread.
    std::vector<detail::owner<lane>> lanes_;
    std::vector<context_end*> ends_;
};

}  // namespace weir::backend::cuda
