#include "backend/cpu/driver.hpp"

#include <unistd.h>

#include <new>

#include "backend/cpu/queue.hpp"

namespace weir::backend::cpu {

namespace {
constexpr std::align_val_t memory_alignment{256};
}

std::unique_ptr<queue> cpu_driver::make_queue(timeline& line, queue_events& events) {
    return std::make_unique<cpu_queue>(line, events);
}

std::byte* cpu_driver::allocate(std::size_t bytes) noexcept {
    return static_cast<std::byte*>(::operator new(bytes, memory_alignment, std::nothrow));
}

void cpu_driver::deallocate(std::byte* memory, std::size_t /*bytes*/) noexcept {
    ::operator delete(memory, memory_alignment);
}

std::size_t cpu_driver::total_memory() const noexcept {
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    const long size = ::sysconf(_SC_PAGE_SIZE);
    return pages > 0 && size > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(size) : 0;
}

}  // namespace weir::backend::cpu
