#include "runtime/submission/ordering.hpp"

#include <atomic>

namespace weir {

namespace {

/// Relaxed, paired with no other operation: an operation sees the mode of before or after.
std::atomic<ordering_mode> of_process{ordering_mode::automatic};
/// The mode of the innermost scope, as own_ordering encodes it.
thread_local std::uint8_t of_scope = 0;

}  // namespace

void set_ordering(ordering_mode mode) noexcept {
    runtime::any_ordering_was_set.store(true, std::memory_order_relaxed);
    of_process.store(mode, std::memory_order_relaxed);
}

ordering_scope::ordering_scope(ordering_mode mode) noexcept : previous_(of_scope) {
    runtime::any_ordering_was_set.store(true, std::memory_order_relaxed);
    of_scope = runtime::own_ordering::encoded(mode);
}

ordering_scope::~ordering_scope() { of_scope = previous_; }

namespace runtime {

std::optional<ordering_mode> scope_ordering() noexcept { return own_ordering::decoded(of_scope); }

ordering_mode process_ordering() noexcept { return of_process.load(std::memory_order_relaxed); }

}  // namespace runtime

}  // namespace weir
