#pragma once

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

}  // namespace weir::backend
