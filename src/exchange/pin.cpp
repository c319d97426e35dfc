#include "weir/pin.hpp"

#include <atomic>
#include <memory>

#include "memory/quarantine.hpp"

namespace weir::exchange {

struct pin::state {
    buffer memory;
    state* next = nullptr;  ///< next in the list of states that are never freed
};

pin::pin(const buffer& memory) {
    auto made = std::make_unique<state>(state{memory, nullptr});
    memory::lend_out(memory);
    state_.store(made.release(), std::memory_order_release);  // pairs with each exchange below
}

pin::pin(pin&& other) noexcept : state_(other.state_.exchange(nullptr, std::memory_order_acq_rel)) {}

pin& pin::operator=(pin&& other) noexcept {
    if (this != &other) {
        state* const theirs = other.state_.exchange(nullptr, std::memory_order_acq_rel);
        keep_for_ever(state_.exchange(theirs, std::memory_order_acq_rel));
    }
    return *this;
}

pin::~pin() { keep_for_ever(state_.exchange(nullptr, std::memory_order_acq_rel)); }

void pin::release() noexcept {
    // Of several threads that release it, one gets the state.
    const std::unique_ptr<state> ended(state_.exchange(nullptr, std::memory_order_acq_rel));
}

void pin::keep_for_ever(state* one) noexcept {
    // A list, so that leak detectors see that the memory is kept on purpose.
    static std::atomic<state*> kept{nullptr};
    std::unique_ptr<state> owned(one);
    if (!owned || !owned->memory) {
        return;
    }
    one->next = kept.load(std::memory_order_relaxed);
    while (!kept.compare_exchange_weak(one->next, one, std::memory_order_release, std::memory_order_relaxed)) {
    }
    static_cast<void>(owned.release());
}

}  // namespace weir::exchange
