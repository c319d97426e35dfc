#include "backend/cuda/streams/submission_queues.hpp"

#include <array>
#include <atomic>
#include <mutex>
#include <new>
#include <utility>

#include "backend/cuda/streams/driver_stream.hpp"
#include "backend/cuda/streams/queue.hpp"

namespace weir::backend::cuda {

constinit std::array<std::atomic<submission_queues::place*>, submission_queues::most_chunks>
    submission_queues::chunks_{};
constinit std::atomic<timeline_id> submission_queues::end_{0};

hot_mutex& submission_queues::lock_of(timeline_id of) {
    if (find_place(of) == nullptr) {
        auto made = std::make_unique<place[]>(chunk_size);
        place* none = nullptr;
        if (chunks_[of / chunk_size].compare_exchange_strong(none, made.get(), std::memory_order_acq_rel)) {
            static_cast<void>(made.release());
        }
    }
    timeline_id known = end_.load(std::memory_order_relaxed);
    while (known <= of && !end_.compare_exchange_weak(known, of + 1, std::memory_order_acq_rel)) {
    }
    return find_place(of)->mutex;
}

void submission_queues::add(timeline_id of, const std::shared_ptr<submission_queue>& one) noexcept {
    place& here = *find_place(of);
    const std::lock_guard lock(here.mutex);
    here.of = one;
    here.on = one->of();
}

void submission_queues::remove(timeline_id of) noexcept {
    place& here = *find_place(of);
    std::shared_ptr<submission_queue> last;  // both destroyed under no lock
    detail::owner<driver_stream> last_on;
    const std::lock_guard lock(here.mutex);
    last = std::move(here.of);
    last_on = std::move(here.on);
}

[[gnu::hot]] std::shared_ptr<submission_queue> submission_queues::find(timeline_id of) noexcept {
    place* const here = find_place(of);
    if (here == nullptr) {
        return nullptr;
    }
    const std::lock_guard lock(here->mutex);
    return here->of;
}

void submission_queues::look_at_all(const device_context& in) noexcept {
    for (timeline_id next = 0; next < end_.load(std::memory_order_acquire); ++next) {
        const std::shared_ptr<submission_queue> one = find(next);
        if (one && &one->of()->in() == &in && one->of()->has_pending()) {
            one->of()->look();
        }
    }
}

}  // namespace weir::backend::cuda
