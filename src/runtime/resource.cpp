#include "runtime/resource.hpp"

namespace weir::runtime {

std::uint64_t resource::next_id() noexcept {
    // A block of numbers for each thread: a shared counter would be the only thing that all allocations touch.
    constexpr std::uint64_t block = 1024;
    static std::atomic<std::uint64_t> next_block{1};
    thread_local std::uint64_t next = 0;
    thread_local std::uint64_t end = 0;
    if (next == end) {
        next = next_block.fetch_add(block, std::memory_order_relaxed);
        end = next + block;
    }
    return next++;
}

}  // namespace weir::runtime
