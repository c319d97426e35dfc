#include "runtime/life.hpp"

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/fork.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::runtime {

namespace {

struct lives {
    detail::mutex mutex;  ///< guards what follows; a leaf in the lock order
    life* free = nullptr;
    std::vector<std::unique_ptr<life[]>> all;
};

lives& all_lives() {
    static auto* const one = new lives;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    return *one;
}

// So that no fork finds it half made.
[[maybe_unused]] const auto& lives_at_start = all_lives();

constexpr std::size_t at_once = 64;

}  // namespace

life& life::take() {
    lives& kept = all_lives();
    const std::lock_guard lock(kept.mutex);
    if (kept.free == nullptr) {
        kept.all.push_back(std::make_unique<life[]>(at_once));
        for (std::size_t i = 0; i < at_once; ++i) {
            life& one = kept.all.back()[i];
            one.next_ = kept.free;
            kept.free = &one;
        }
    }
    life& taken = *kept.free;
    kept.free = taken.next_;
    return taken;
}

void life::give_back() noexcept {
    owner.store(0, std::memory_order_relaxed);
    if (fork_guard::is_refused()) {
        return;  // a thread that is gone may hold the lock
    }
    lives& kept = all_lives();
    const std::lock_guard lock(kept.mutex);
    next_ = kept.free;
    kept.free = this;
}

}  // namespace weir::runtime
