#include "weir/pin.hpp"

#include <atomic>
#include <utility>

#include "memory/quarantine.hpp"

namespace weir::exchange {

struct pin::state {
    buffer memory;
    state* next = nullptr;  ///< next in the list of states that are never freed
};

pin::pin(const buffer& memory) : state_(std::make_unique<state>(state{memory, nullptr})) { memory::lend_out(memory); }

pin::pin(pin&& other) noexcept = default;

pin& pin::operator=(pin&& other) noexcept {
    if (this != &other) {
        keep_for_ever();
        state_ = std::move(other.state_);
    }
    return *this;
}

pin::~pin() { keep_for_ever(); }

void pin::release() noexcept { state_ = nullptr; }

void pin::keep_for_ever() noexcept {
    // A list, so that leak detectors see that the memory is kept on purpose.
    static std::atomic<state*> kept{nullptr};
    if (state_ && !state_->memory) {
        state_ = nullptr;
    }
    if (state* const one = state_.release()) {
        one->next = kept.load(std::memory_order_relaxed);
        while (!kept.compare_exchange_weak(one->next, one, std::memory_order_release, std::memory_order_relaxed)) {
        }
    }
}

}  // namespace weir::exchange
