#include "fiber.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define WEIR_FAKE_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEIR_FAKE_ASAN
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define WEIR_FAKE_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_FAKE_TSAN
#endif
#endif

#ifdef WEIR_FAKE_ASAN
#include <sanitizer/asan_interface.h>
#endif
#ifdef WEIR_FAKE_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace weir_fake {

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t stack_bytes = 128 << 10;

}  // namespace

fiber::fiber() {
#ifdef WEIR_FAKE_TSAN
    thread_fiber_ = __tsan_get_current_fiber();
#endif
}

fiber::fiber(body what) : what_(what), bytes_(stack_bytes) {
    stack_ =
        ::mmap(nullptr, page + stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack_ == MAP_FAILED) {
        throw std::bad_alloc();
    }
    ::mprotect(stack_, page, PROT_NONE);
    bottom_ = static_cast<char*>(stack_) + page;
    ::getcontext(&place_);
    place_.uc_stack.ss_sp = static_cast<char*>(stack_) + page;
    place_.uc_stack.ss_size = stack_bytes;
    place_.uc_link = nullptr;
    const auto me = reinterpret_cast<std::uintptr_t>(this);
    ::makecontext(&place_, reinterpret_cast<void (*)()>(&fiber::start), 2, static_cast<unsigned>(me),
                  static_cast<unsigned>(me >> 32));
#ifdef WEIR_FAKE_TSAN
    thread_fiber_ = __tsan_create_fiber(0);
#endif
}

fiber::~fiber() {
    if (stack_ == nullptr) {
        return;
    }
#ifdef WEIR_FAKE_TSAN
    __tsan_destroy_fiber(thread_fiber_);
#endif
#ifdef WEIR_FAKE_ASAN
    // Frames that were abandoned are still marked.
    __asan_unpoison_memory_region(stack_, page + stack_bytes);
#endif
    ::munmap(stack_, page + stack_bytes);
}

void fiber::switch_to(fiber& to) {
    to.from_ = this;
#ifdef WEIR_FAKE_ASAN
    __sanitizer_start_switch_fiber(&fake_stack_, to.bottom_, to.bytes_);
#endif
#ifdef WEIR_FAKE_TSAN
    __tsan_switch_to_fiber(to.thread_fiber_, 0);
#endif
    ::swapcontext(&place_, &to.place_);
    arrive();
}

void fiber::arrive() {
#ifdef WEIR_FAKE_ASAN
    // The stack that was left is learnt here: no other call reports where a thread's own stack lies.
    __sanitizer_finish_switch_fiber(fake_stack_, &from_->bottom_, &from_->bytes_);
#endif
}

void fiber::start(unsigned low, unsigned high) {
    auto* const me = reinterpret_cast<fiber*>(std::uintptr_t{low} | std::uintptr_t{high} << 32);
    me->arrive();
    me->what_(*me);
}

}  // namespace weir_fake
