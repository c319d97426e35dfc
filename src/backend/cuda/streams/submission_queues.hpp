#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

#include "backend/cuda/device/device_context.hpp"
#include "backend/cuda/streams/driver_stream.hpp"
#include "backend/hot_mutex.hpp"
#include "backend/timeline.hpp"
#include "frontier/point.hpp"

namespace weir::backend::cuda {

class submission_queue;

/// The submission queues of CUDA streams by their timelines. Each has a place of its own, which stays when the stream is destroyed,
/// so that threads that look up different streams do not contend.
class submission_queues {
public:
    /// The lock of a timeline's place: it guards the place, and the members of the stream's driver_stream. Never destroyed; a leaf in
    /// the lock order. Throws std::bad_alloc.
    [[nodiscard]] static hot_mutex& lock_of(timeline_id of);
    /// Requires that `lock_of` was called for the timeline.
    static void add(timeline_id of, const std::shared_ptr<submission_queue>& one) noexcept;
    static void remove(timeline_id of) noexcept;
    /// Null if the timeline does not belong to a CUDA stream.
    [[nodiscard]] static std::shared_ptr<submission_queue> find(timeline_id of) noexcept;
    /// Looks for complete operations in all streams of a device.
    static void look_at_all(const device_context& in) noexcept;

    struct alignas(64) place {
        hot_mutex mutex;  ///< guards what follows
        std::shared_ptr<submission_queue> of;
        detail::owner<driver_stream> on;
    };
    /// The place of a timeline; null if lock_of was never called for a timeline of its chunk.
    [[nodiscard]] static place* find_place(timeline_id of) noexcept {
        place* const chunk = chunks_[of / chunk_size].load(std::memory_order_acquire);
        return chunk == nullptr ? nullptr : chunk + of % chunk_size;
    }

private:
    // Room for as many places as timeline_table has timelines.
    static constexpr std::size_t chunk_size = 256;
    static constexpr std::size_t most_chunks = 16384;

    static std::array<std::atomic<place*>, most_chunks> chunks_;  ///< of `chunk_size` places each; never freed
    static std::atomic<timeline_id> end_;                         ///< one past the last place that was ever asked for
};

}  // namespace weir::backend::cuda
