#pragma once

#include <cstddef>

namespace weir::backend {

/// Prefetches the cache line of `at` for writing. A write to a line that is not in the cache waits in the store buffer,
/// and the next atomic read-modify-write, of which each operation does several, waits for that write.
inline void fetch_for_writing(const void* at) noexcept {
#if defined(__x86_64__)
    // Not __builtin_prefetch, which prefetches for reading where the compiler may not use this instruction. Processors
    // that lack it ignore it.
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
#else
    __builtin_prefetch(at, 1);
#endif
}

/// The same for all bytes from `first` up to `end`, exclusive; at least one byte.
inline void fetch_for_writing(const void* first, const void* end) noexcept {
    constexpr std::ptrdiff_t line = 64;
    const char* const last = static_cast<const char*>(end) - 1;
    for (const char* at = static_cast<const char*>(first); at < last; at += line) {
        fetch_for_writing(at);
    }
    fetch_for_writing(last);
}

}  // namespace weir::backend
