#include "backend/cpu/driver.hpp"

#include <unistd.h>

#include <cstring>
#include <new>

#include "backend/cpu/inline_queue.hpp"
#include "backend/cpu/queue.hpp"

namespace weir::backend::cpu {

namespace {
constexpr std::align_val_t memory_alignment{256};
}

std::unique_ptr<queue> cpu_driver::make_queue(timeline& line, queue_events& events, const queue_options& /*how*/) {
    if (is_inline_) {
        return std::make_unique<inline_queue>(line, events);
    }
    workers::instance().start();
    return std::make_unique<cpu_queue>(line, events);
}

memory_piece cpu_driver::allocate(std::size_t bytes) noexcept {
    return {static_cast<std::byte*>(::operator new(bytes, memory_alignment, std::nothrow)), 0};
}

void cpu_driver::deallocate(memory_piece memory, std::size_t /*bytes*/) noexcept {
    ::operator delete(memory.address, memory_alignment);
}

void cpu_driver::fetch(std::byte* host, const std::byte* device, std::size_t bytes) {
    std::memcpy(host, device, bytes);
}

void cpu_driver::store(std::byte* device, const std::byte* host, std::size_t bytes) {
    std::memcpy(device, host, bytes);
}

std::size_t cpu_driver::total_memory() const noexcept {
    static const std::size_t bytes = [] {
        const long pages = ::sysconf(_SC_PHYS_PAGES);
        const long size = ::sysconf(_SC_PAGE_SIZE);
        return pages > 0 && size > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(size) : 0;
    }();
    return bytes;
}

}  // namespace weir::backend::cpu
