#pragma once

#include <map>
#include <mutex>
#include <span>

#include "backend/fork_part.hpp"
#include "frontier/point.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::runtime {

class stream_state;

/// All streams of the process, by their timelines: for those who look for the reason of a failure or of a standstill.
class stream_registry {
public:
    /// Throws std::bad_alloc.
    static void add(frontiers::timeline_id timeline, stream_state& stream);
    static void remove(frontiers::timeline_id timeline) noexcept;

    /// Before a fork (backend::fork_part::look): a stream that has work which is not over.
    [[nodiscard]] static backend::fork_part::finding look_for_work(std::span<char> who) noexcept;

    /// Calls `visit(stream_state&)` for each stream; none of them goes meanwhile. Owners of streams must not be dropped in
    /// it.
    template <class Visit>
    static void each(Visit&& visit) {
        registry& all = instance();
        const std::lock_guard lock(all.mutex);
        for (const auto& [timeline, stream] : all.streams) {
            visit(*stream);
        }
    }

    /// Calls `visit(stream_state&)` for the stream of the timeline. false if there is none (any more).
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
        detail::mutex mutex;  ///< guards streams; after devices, before streams
        std::map<frontiers::timeline_id, stream_state*> streams;
    };
    static registry& instance();
};

}  // namespace weir::runtime
