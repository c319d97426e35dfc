#include "runtime/lifetime/liveness_token.hpp"

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/host/fork.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::runtime {

namespace {

struct token_registry {
    detail::mutex mutex;  ///< guards what follows; a leaf in the lock order
    liveness_token* free = nullptr;
    std::vector<std::unique_ptr<liveness_token[]>> all;
};

token_registry& all_tokens() {
    static auto* const one = new token_registry;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    return *one;
}

// At static initialization, so that no fork finds it half constructed.
[[maybe_unused]] const auto& lives_at_start = all_tokens();

constexpr std::size_t at_once = 64;

}  // namespace

liveness_token& liveness_token::take() {
    token_registry& kept = all_tokens();
    const std::lock_guard lock(kept.mutex);
    if (kept.free == nullptr) {
        kept.all.push_back(std::make_unique<liveness_token[]>(at_once));
        for (std::size_t i = 0; i < at_once; ++i) {
            liveness_token& one = kept.all.back()[i];
            one.next_ = kept.free;
            kept.free = &one;
        }
    }
    liveness_token& taken = *kept.free;
    kept.free = taken.next_;
    return taken;
}

void liveness_token::give_back() noexcept {
    owner.store(0, std::memory_order_relaxed);
    if (fork_guard::is_refused()) {
        return;  // a thread that is gone may hold the lock
    }
    token_registry& kept = all_tokens();
    const std::lock_guard lock(kept.mutex);
    next_ = kept.free;
    kept.free = this;
}

}  // namespace weir::runtime
