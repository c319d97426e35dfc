#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

#include "backend/cuda/device_context.hpp"
#include "backend/cuda/lane.hpp"
#include "backend/hot_mutex.hpp"
#include "backend/timeline.hpp"
#include "frontier/point.hpp"

namespace weir::backend::cuda {

class submission;

/// The submissions of CUDA streams by their timelines. Each has a place of its own, which stays when the stream goes, so that
/// threads that look for different streams do not meet.
class submissions {
public:
    /// The lock of a timeline's place: it guards the place, and what the stream's lane keeps. Lives for ever; a leaf in the
    /// lock order. Throws std::bad_alloc.
    [[nodiscard]] static hot_mutex& lock_of(timeline_id of);
    /// `lock_of` has been called for the timeline.
    static void add(timeline_id of, const std::shared_ptr<submission>& one) noexcept;
    static void remove(timeline_id of) noexcept;
    /// Null if the timeline is none of a CUDA stream.
    [[nodiscard]] static std::shared_ptr<submission> find(timeline_id of) noexcept;
    /// Looks how far all streams of a device are.
    static void look_at_all(const device_context& in) noexcept;

    struct alignas(64) place {
        hot_mutex mutex;  ///< guards what follows
        std::shared_ptr<submission> of;
        detail::owner<lane> on;
    };
    /// The place of a timeline; null if nobody has asked for the lock of one near it.
    [[nodiscard]] static place* find_place(timeline_id of) noexcept {
        place* const chunk = chunks_[of / chunk_size].load(std::memory_order_acquire);
        return chunk == nullptr ? nullptr : chunk + of % chunk_size;
    }

private:
    // As many as there may be timelines (timeline_table).
    static constexpr std::size_t chunk_size = 256;
    static constexpr std::size_t most_chunks = 16384;

    static std::array<std::atomic<place*>, most_chunks> chunks_;  ///< of `chunk_size` places each; never freed
    static std::atomic<timeline_id> end_;                         ///< behind the last place that was ever asked for
};

}  // namespace weir::backend::cuda
