#include "backend/cuda/submissions.hpp"

#include <array>
#include <atomic>
#include <mutex>
#include <new>
#include <utility>

#include "backend/cuda/lane.hpp"
#include "backend/cuda/queue.hpp"

namespace weir::backend::cuda {

namespace {

struct alignas(64) place {
    hot_mutex mutex;  ///< guards what follows
    std::shared_ptr<submission> of;
};

// As many as there may be timelines (timeline_table).
constexpr std::size_t chunk_size = 256;
constexpr std::size_t most_chunks = 16384;

constinit std::array<std::atomic<place*>, most_chunks> chunks{};  // of `chunk_size` places each; never freed
constinit std::atomic<timeline_id> end{0};                        // behind the last place that was ever asked for

/// Null if nobody has asked for the lock of a timeline near it.
place* find_place(timeline_id of) noexcept {
    place* const chunk = chunks[of / chunk_size].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : chunk + of % chunk_size;
}

}  // namespace

hot_mutex& submissions::lock_of(timeline_id of) {
    if (find_place(of) == nullptr) {
        auto made = std::make_unique<place[]>(chunk_size);
        place* none = nullptr;
        if (chunks[of / chunk_size].compare_exchange_strong(none, made.get(), std::memory_order_acq_rel)) {
            static_cast<void>(made.release());
        }
    }
    timeline_id known = end.load(std::memory_order_relaxed);
    while (known <= of && !end.compare_exchange_weak(known, of + 1, std::memory_order_acq_rel)) {
    }
    return find_place(of)->mutex;
}

void submissions::add(timeline_id of, const std::shared_ptr<submission>& one) noexcept {
    place& here = *find_place(of);
    const std::lock_guard lock(here.mutex);
    here.of = one;
}

void submissions::remove(timeline_id of) noexcept {
    place& here = *find_place(of);
    std::shared_ptr<submission> last;  // destroyed under no lock
    const std::lock_guard lock(here.mutex);
    last = std::move(here.of);
}

[[gnu::hot]] std::shared_ptr<submission> submissions::find(timeline_id of) noexcept {
    place* const here = find_place(of);
    if (here == nullptr) {
        return nullptr;
    }
    const std::lock_guard lock(here->mutex);
    return here->of;
}

[[gnu::hot]] bool submissions::has_entered(point target, lane::awaited_end& known) noexcept {
    place* const here = find_place(target.timeline);
    if (here == nullptr) {
        return false;
    }
    const std::lock_guard lock(here->mutex);
    if (!here->of || !here->of->of()->has_entered(target.at, known)) {
        return false;
    }
    if (!known.behind) {
        known.of = here->of->of();
    }
    return true;
}

void submissions::look_at_all(const device_context& in) noexcept {
    for (timeline_id next = 0; next < end.load(std::memory_order_acquire); ++next) {
        const std::shared_ptr<submission> one = find(next);
        if (one && &one->of()->in() == &in && one->of()->has_pending()) {
            one->of()->prepare(one->of()->submitted());
            one->of()->look();
        }
    }
}

}  // namespace weir::backend::cuda
