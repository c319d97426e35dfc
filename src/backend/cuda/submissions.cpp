#include "backend/cuda/submissions.hpp"

#include <array>
#include <atomic>
#include <mutex>
#include <new>
#include <utility>

#include "backend/cuda/lane.hpp"
#include "backend/cuda/queue.hpp"

namespace weir::backend::cuda {

constinit std::array<std::atomic<submissions::place*>, submissions::most_chunks> submissions::chunks_{};
constinit std::atomic<timeline_id> submissions::end_{0};

hot_mutex& submissions::lock_of(timeline_id of) {
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

void submissions::add(timeline_id of, const std::shared_ptr<submission>& one) noexcept {
    place& here = *find_place(of);
    const std::lock_guard lock(here.mutex);
    here.of = one;
    here.on = one->of();
}

void submissions::remove(timeline_id of) noexcept {
    place& here = *find_place(of);
    std::shared_ptr<submission> last;  // both destroyed under no lock
    detail::owner<lane> last_on;
    const std::lock_guard lock(here.mutex);
    last = std::move(here.of);
    last_on = std::move(here.on);
}

[[gnu::hot]] std::shared_ptr<submission> submissions::find(timeline_id of) noexcept {
    place* const here = find_place(of);
    if (here == nullptr) {
        return nullptr;
    }
    const std::lock_guard lock(here->mutex);
    return here->of;
}

void submissions::look_at_all(const device_context& in) noexcept {
    for (timeline_id next = 0; next < end_.load(std::memory_order_acquire); ++next) {
        const std::shared_ptr<submission> one = find(next);
        if (one && &one->of()->in() == &in && one->of()->has_pending()) {
            one->of()->look();
        }
    }
}

}  // namespace weir::backend::cuda
