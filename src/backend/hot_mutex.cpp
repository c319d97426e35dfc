#include "backend/hot_mutex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

#include "backend/process_barrier.hpp"
#include "backend/spin.hpp"

namespace weir::backend {

namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t), "futex(2) takes the number itself");

/// Sleeps while `word` is `value`, for `most` at most; without a limit if that is null. May return for no reason.
void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value, const std::timespec* most) noexcept {
    ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, most, nullptr, 0);
}

}  // namespace

void raw_hot_mutex::lock_slowly() noexcept {
    if (spin_until([this] { return try_lock(); }, false)) {
        return;
    }
    constexpr std::timespec a_millisecond{0, 1'000'000};
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const std::timespec* const most = process_barrier() ? nullptr : &a_millisecond;
    while (!try_lock()) {
        sleep_while(state_, 1, most);
    }
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void raw_hot_mutex::wake_one() noexcept { ::syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0); }

}  // namespace weir::backend
