#include "runtime/lifetime/resource.hpp"

#include "backend/own_variable.hpp"
#include "runtime/numbers.hpp"

namespace weir::runtime {

std::uint64_t resource::next_id() noexcept { return next_resource_number(); }

std::uint64_t next_resource_number() noexcept {
    // Each thread reserves a block of numbers: a shared counter would be the only cache line that all allocations touch.
    constexpr std::uint64_t block = 1024;
    static std::atomic<std::uint64_t> next_block{1};
    struct numbers {
        std::uint64_t next = 0;
        std::uint64_t end = 0;
    };
    thread_local numbers of_thread;
    numbers& own = backend::found_once(of_thread);
    if (own.next == own.end) {
        own.next = next_block.fetch_add(block, std::memory_order_relaxed);
        own.end = own.next + block;
    }
    return own.next++;
}

}  // namespace weir::runtime
