#include "support/scarce_memory.hpp"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

constexpr long no_end = 1L << 60;
std::atomic<long> allowed{no_end};
std::atomic<long> live{0};
std::atomic<long> bytes{0};
thread_local bool is_exempt = false;
thread_local long until_failure = 0;  // 0: no failure is wanted, or it has happened
thread_local long until_call = 0;     // the same for the call
thread_local void (*call)() = nullptr;

bool may_allocate() noexcept {
    if (until_call > 0 && --until_call == 0) {
        call();
    }
    if (until_failure > 0 && --until_failure == 0) {
        return false;
    }
    return is_exempt || allowed.fetch_sub(1, std::memory_order_relaxed) > 0;
}

/// Memory of `size` bytes at a multiple of `unit`; null if there is none, or none is allowed.
void* taken(std::size_t size, std::size_t unit) noexcept {
    const std::size_t rounded = (std::max<std::size_t>(size, 1) + unit - 1) / unit * unit;
    void* const made = may_allocate() ? std::aligned_alloc(unit, rounded) : nullptr;
    if (made != nullptr) {
        live.fetch_add(1, std::memory_order_relaxed);
        bytes.fetch_add(static_cast<long>(::malloc_usable_size(made)), std::memory_order_relaxed);
    }
    return made;
}

void* taken_or_thrown(std::size_t size, std::size_t unit) {
    void* const made = taken(size, unit);
    if (made == nullptr) {
        throw std::bad_alloc();
    }
    return made;
}

constexpr std::size_t usual = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
std::size_t number(std::align_val_t unit) noexcept { return static_cast<std::size_t>(unit); }

void give_back(void* memory) noexcept {
    if (memory != nullptr) {
        live.fetch_sub(1, std::memory_order_relaxed);
        bytes.fetch_sub(static_cast<long>(::malloc_usable_size(memory)), std::memory_order_relaxed);
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
void at_allocation(long nth, void (*then)()) noexcept {
    call = then;
    until_call = nth;
}
long live_allocations() noexcept { return live.load(std::memory_order_relaxed); }
long live_bytes() noexcept { return bytes.load(std::memory_order_relaxed); }

}  // namespace weir::test

// All forms that Weir and the libraries beneath it use: a sanitizer provides its own versions of the others.
void* operator new(std::size_t size) { return taken_or_thrown(size, usual); }
void* operator new[](std::size_t size) { return taken_or_thrown(size, usual); }
void* operator new(std::size_t size, std::align_val_t unit) { return taken_or_thrown(size, number(unit)); }
void* operator new[](std::size_t size, std::align_val_t unit) { return taken_or_thrown(size, number(unit)); }
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept { return taken(size, usual); }
void* operator new[](std::size_t size, const std::nothrow_t& /*tag*/) noexcept { return taken(size, usual); }
void* operator new(std::size_t size, std::align_val_t unit, const std::nothrow_t& /*tag*/) noexcept {
    return taken(size, number(unit));
}
void* operator new[](std::size_t size, std::align_val_t unit, const std::nothrow_t& /*tag*/) noexcept {
    return taken(size, number(unit));
}
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete[](void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { give_back(memory); }
void operator delete[](void* memory, std::size_t /*size*/) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t /*unit*/) noexcept { give_back(memory); }
void operator delete[](void* memory, std::align_val_t /*unit*/) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t /*size*/, std::align_val_t /*unit*/) noexcept { give_back(memory); }
void operator delete[](void* memory, std::size_t /*size*/, std::align_val_t /*unit*/) noexcept { give_back(memory); }
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept { give_back(memory); }
void operator delete[](void* memory, const std::nothrow_t& /*tag*/) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t /*unit*/, const std::nothrow_t& /*tag*/) noexcept {
    give_back(memory);
}
void operator delete[](void* memory, std::align_val_t /*unit*/, const std::nothrow_t& /*tag*/) noexcept {
    give_back(memory);
}
