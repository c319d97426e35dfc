// How often a test repeats its steps.
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

/// A tenth under a sanitizer, where each step costs many times as much: that many are enough to detect what the sanitizer detects.
constexpr int repeated(int times) { return sanitized ? times / 10 : times; }

}  // namespace weir::test
