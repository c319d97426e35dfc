#pragma once

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
    /// Whether `target` is in a stream of the driver's, for somebody who is about to have a stream wait for it (lane::has_entered).
    [[nodiscard]] static bool has_entered(point target, lane::awaited_end& known) noexcept;
    /// Looks how far all streams of a device are.
    static void look_at_all(const device_context& in) noexcept;
};

}  // namespace weir::backend::cuda
