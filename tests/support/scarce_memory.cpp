#include "support/scarce_memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

constexpr long no_end = 1L << 60;
std::atomic<long> allowed{no_end};
std::atomic<long> live{0};
thread_local bool is_exempt = false;
thread_local long until_failure = 0;  // 0: none is wanted, or it was

bool may_allocate() noexcept {
    if (until_failure > 0 && --until_failure == 0) {
        return false;
    }
    return is_exempt || allowed.fetch_sub(1, std::memory_order_relaxed) > 0;
}

void* noted(void* made) {
    if (made == nullptr) {
        throw std::bad_alloc();
    }
    live.fetch_add(1, std::memory_order_relaxed);
    return made;
}

void give_back(void* memory) noexcept {
    if (memory != nullptr) {
        live.fetch_sub(1, std::memory_order_relaxed);
        std::free(memory);
    }
}

}  // namespace

namespace weir::test {

void allow_allocations(long more) noexcept { allowed = more; }
void allow_all_allocations() noexcept { allowed = no_end; }
void exempt_this_thread() noexcept { is_exempt = true; }
void fail_allocation(long nth) noexcept { until_failure = nth; }
bool allocation_has_failed() noexcept { return until_failure == 0; }
long live_allocations() noexcept { return live.load(std::memory_order_relaxed); }

}  // namespace weir::test

// The other forms of `new` call one of these two.
void* operator new(std::size_t size) {
    return noted(may_allocate() ? std::malloc(std::max<std::size_t>(size, 1)) : nullptr);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
    const auto unit = static_cast<std::size_t>(alignment);
    const std::size_t rounded = (std::max<std::size_t>(size, 1) + unit - 1) / unit * unit;
    return noted(may_allocate() ? std::aligned_alloc(unit, rounded) : nullptr);
}
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept { give_back(memory); }
