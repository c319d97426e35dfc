// How often a test does the same.
#pragma once

namespace weir::test {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
#else
inline constexpr bool sanitized = false;
#endif

/// A tenth under a sanitizer, where each step costs many times as much: what it is there to see, it sees in that many.
constexpr int repeated(int times) { return sanitized ? times / 10 : times; }

}  // namespace weir::test
