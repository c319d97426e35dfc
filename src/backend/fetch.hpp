#pragma once

#include <cstddef>

namespace weir::backend {

/// Has the processor get the cache line of `at` for writing. A write to a line that is not there waits in the store buffer,
/// and the next atomic change of anything, of which there are several for each operation, waits for that write.
inline void fetch_for_writing(const void* at) noexcept {
#if defined(__x86_64__)
    // Not __builtin_prefetch, which fetches for reading where the compiler may not use this instruction. Processors
    // that lack it do nothing.
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
#else
    __builtin_prefetch(at, 1);
#endif
}

/// The same for all bytes from `first` to before `end`, at least one.
inline void fetch_for_writing(const void* first, const void* end) noexcept {
    constexpr std::ptrdiff_t line = 64;
    const char* const last = static_cast<const char*>(end) - 1;
    for (const char* at = static_cast<const char*>(first); at < last; at += line) {
        fetch_for_writing(at);
    }
    fetch_for_writing(last);
}

}  // namespace weir::backend
