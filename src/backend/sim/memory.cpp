#include "backend/sim/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace weir::backend::sim {

namespace {

/// Maps a file. Null if that fails.
std::byte* map(int file, std::size_t bytes, int access) noexcept {
    void* const mapped = ::mmap(nullptr, bytes, access, MAP_SHARED, file, 0);
    return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

}  // namespace

memory_chunk map_twice(std::size_t bytes) noexcept {
    const int file = ::memfd_create("weir-sim", MFD_CLOEXEC);
    if (file < 0) {
        return {};
    }
    memory_chunk chunk;
    if (::ftruncate(file, static_cast<off_t>(bytes)) == 0) {
        std::byte* const device = map(file, bytes, PROT_READ | PROT_WRITE);
        std::byte* const host = device == nullptr ? nullptr : map(file, bytes, PROT_NONE);
        if (host != nullptr) {
            chunk = {device, host - device};
        } else if (device != nullptr) {
            ::munmap(device, bytes);
        }
    }
    ::close(file);  // the mappings keep the memory
    return chunk;
}

void unmap(memory_chunk chunk, std::size_t bytes) noexcept {
    ::munmap(chunk.address + chunk.to_host, bytes);
    ::munmap(chunk.address, bytes);
}

}  // namespace weir::backend::sim
