#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>

#include "backend/fork_part.hpp"
#include "frontier/point.hpp"
#include "order/wait_counts.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::runtime {

class stream_state;

/// All streams of the process, by their timelines. Used to find the reason of a failure or of a standstill.
class stream_registry {
public:
    /// Throws std::bad_alloc.
    static void add(frontiers::timeline_id timeline, stream_state& stream);
    static void remove(frontiers::timeline_id timeline) noexcept;

    /// What the streams of the process have done, those that are gone included.
    struct totals {
        std::uint64_t operations = 0;
        order::wait_counts waits;
    };
    /// Adds up what each stream counts. Locks each stream for a moment; waits for no work.
    [[nodiscard]] static totals count() noexcept;

    /// Before a fork (backend::fork_part::look): whether a stream has work that is not complete. Describes that stream in `owner`.
    [[nodiscard]] static backend::fork_part::finding look_for_work(std::span<char> owner) noexcept;

    /// Calls `visit(stream_state&)` for each stream; no stream ends meanwhile. `visit` must not drop owners of streams.
    template <class Visit>
    static void each(Visit&& visit) {
        registry& all = instance();
        const std::lock_guard lock(all.mutex);
        for (const auto& [timeline, stream] : all.streams) {
            visit(*stream);
        }
    }

    /// Calls `visit(stream_state&)` for the stream of the timeline. Returns false if there is none, or none any more.
    template <class Visit>
    static bool with(frontiers::timeline_id timeline, Visit&& visit) {
        registry& all = instance();
        const std::lock_guard lock(all.mutex);
        const auto found = all.streams.find(timeline);
        if (found == all.streams.end()) {
            return false;
        }
        visit(*found->second);
        return true;
    }

private:
    struct registry {
        detail::mutex mutex;  ///< guards streams; in the lock order after devices, before streams
        std::map<frontiers::timeline_id, stream_state*> streams;
        totals gone;  ///< of streams that are gone; guarded by the mutex
    };
    static registry& instance();
};

}  // namespace weir::runtime
