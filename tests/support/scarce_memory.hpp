// For programs that are linked with scarce_memory.cpp: `new` fails where a test asks for it.
#pragma once

namespace weir::test {

/// `more` further allocations succeed, in all threads together that are not exempt; after that `new` throws std::bad_alloc.
void allow_allocations(long more) noexcept;
void allow_all_allocations() noexcept;
/// The calling thread's allocations succeed, and do not count.
void exempt_this_thread() noexcept;

/// Of the calling thread's next allocations only number `nth` throws, 1 being the first. 0: none does.
void fail_allocation(long nth) noexcept;
/// Whether that allocation was made, and failed.
[[nodiscard]] bool allocation_has_failed() noexcept;

/// Of the calling thread's next allocations, number `nth` calls `then` first, which allocates nothing. 0: none does.
void at_allocation(long nth, void (*then)()) noexcept;

/// Allocations of all threads that were not given back.
[[nodiscard]] long live_allocations() noexcept;
/// The bytes of these allocations.
[[nodiscard]] long live_bytes() noexcept;

}  // namespace weir::test
