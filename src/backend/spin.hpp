#pragma once

#include <chrono>
#include <thread>

namespace weir::backend {

/// How long a thread polls before it sleeps: less than a sleep and a wake cost, since the awaited event may depend on a thread
/// that cannot run because this one occupies the processor.
inline constexpr std::chrono::microseconds patience{5};

/// Whether the awaited event can happen while this thread polls.
[[nodiscard]] inline bool worth_spinning() noexcept {
    static const bool several_processors = std::thread::hardware_concurrency() > 1;  // reads a file
    return several_processors;
}

inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
}

/// Calls `found()` until it returns true or the patience is over. Returns its last answer.
///
/// Polls less and less often: each poll takes the cache line from the thread that is to write to it, and where that thread
/// writes often, a later poll finds more.
///
/// `gives_way`: lets other threads run in between. Good for a thread with nothing to do, beside one on the same processor
/// that fills its queue: it comes back to more work at once. Bad for a thread that must react fast: on a machine that is busy
/// with other programs, each yield may cost it a time slice.
template <class Found>
[[nodiscard]] bool spin_until(Found&& found, bool gives_way) noexcept {
    constexpr int most_pauses = 16;
    if (!worth_spinning()) {
        return found();
    }
    const auto end = std::chrono::steady_clock::now() + patience;
    for (int pauses = 1;; pauses *= 2) {
        if (found()) {
            return true;
        }
        if (pauses > most_pauses) {
            if (std::chrono::steady_clock::now() >= end) {
                return false;
            }
            if (gives_way) {
                std::this_thread::yield();
            }
            pauses = most_pauses / 2;
        }
        for (int i = 0; i < pauses; ++i) {
            relax();
        }
    }
}

}  // namespace weir::backend
