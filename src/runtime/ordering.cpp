#include "runtime/ordering.hpp"

#include <atomic>

namespace weir {

namespace {

/// Alone: an operation sees the mode of before or after.
std::atomic<ordering_mode> of_process{ordering_mode::automatic};
/// 0 for none, else 1 + ordering_mode.
thread_local std::uint8_t of_scope = 0;

}  // namespace

void set_ordering(ordering_mode mode) noexcept { of_process.store(mode, std::memory_order_relaxed); }

ordering_scope::ordering_scope(ordering_mode mode) noexcept : previous_(of_scope) {
    of_scope = static_cast<std::uint8_t>(static_cast<std::uint8_t>(mode) + 1);
}

ordering_scope::~ordering_scope() { of_scope = previous_; }

namespace runtime {

std::optional<ordering_mode> scope_ordering() noexcept {
    return of_scope == 0 ? std::nullopt : std::optional(static_cast<ordering_mode>(of_scope - 1));
}

ordering_mode process_ordering() noexcept { return of_process.load(std::memory_order_relaxed); }

}  // namespace runtime

}  // namespace weir
