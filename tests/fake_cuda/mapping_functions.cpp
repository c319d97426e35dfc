// cuMemAddress*, cuMemCreate, cuMemMap: ranges of addresses, and memory that is mapped there. None of them waits, and all
// work in a broken context, as with NVIDIA's driver.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "control.hpp"
#include "driver.hpp"

using namespace weir_fake;

namespace {

struct location {
    int type;
    int id;
};
struct properties {
    int type;
    int handle_types;
    location at;
    void* metadata;
    unsigned char flags[8];
};
struct permission {
    location at;
    int flags;
};

constexpr std::size_t granularity = std::size_t{2} << 20;

/// With the lock; null if there is no such device.
context* device_of(const properties* what) {
    auto& all = driver().contexts;
    const bool is_there = what != nullptr && what->type == 1 && what->at.type == 1 && what->at.id >= 0 &&
                          static_cast<std::size_t>(what->at.id) < all.size();
    return is_there ? &all[static_cast<std::size_t>(what->at.id)] : nullptr;
}

bool is_whole(std::uint64_t bytes) { return bytes != 0 && bytes % granularity == 0; }

void* put_out_of_reach(std::uintptr_t address, std::size_t bytes) {
    return ::mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (address != 0 ? MAP_FIXED : 0), -1, 0);
}

/// Memory is freed once neither a handle nor a mapping keeps it. With the lock.
void let_go(std::uint64_t handle) {
    const auto found = driver().created.find(handle);
    if (--found->second.references == 0) {
        found->second.in->used -= found->second.bytes;
        driver().created.erase(found);
    }
}

}  // namespace

WEIR_FAKE_EXPORT CUresult cuMemGetAllocationGranularity(std::size_t* bytes, const properties* what, int which) {
    if (const CUresult error = enter("cuMemGetAllocationGranularity"); error != success) {
        return error;
    }
    const std::lock_guard held(driver().lock);
    *bytes = granularity;
    return device_of(what) == nullptr || which < 0 || which > 1 ? invalid_value : success;
}

WEIR_FAKE_EXPORT CUresult cuMemAddressReserve(CUdeviceptr* made, std::size_t bytes, std::size_t alignment,
                                              CUdeviceptr wanted, unsigned long long flags) {
    if (const CUresult error = enter("cuMemAddressReserve"); error != success) {
        return error;
    }
    if (!is_whole(bytes) || alignment != 0 || wanted != 0 || flags != 0) {
        return invalid_value;  // Weir does not ask for this
    }
    void* const pages = put_out_of_reach(0, bytes);
    if (pages == MAP_FAILED) {
        return out_of_memory;
    }
    const std::lock_guard held(driver().lock);
    *made = reinterpret_cast<std::uintptr_t>(pages);
    driver().reserved[*made] = bytes;
    return success;
}

WEIR_FAKE_EXPORT CUresult cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
    if (const CUresult error = enter("cuMemAddressFree"); error != success) {
        return error;
    }
    const std::lock_guard held(driver().lock);
    const auto found = driver().reserved.find(address);
    if (found == driver().reserved.end() || found->second != bytes || driver().mapped.count(address) != 0) {
        return invalid_value;
    }
    driver().reserved.erase(found);
    ::munmap(reinterpret_cast<void*>(address), bytes);
    return success;
}

WEIR_FAKE_EXPORT CUresult cuMemCreate(unsigned long long* made, std::size_t bytes, const properties* what,
                                      unsigned long long flags) {
    if (const CUresult error = enter("cuMemCreate"); error != success) {
        return error;
    }
    const std::lock_guard held(driver().lock);
    context* const of = device_of(what);
    if (of == nullptr || !is_whole(bytes) || flags != 0) {
        return invalid_value;
    }
    if (bytes > free_bytes(*of)) {
        return out_of_memory;
    }
    of->used += bytes;
    *made = driver().next_created++;
    driver().created[*made] = {of, bytes, 1};
    return success;
}

WEIR_FAKE_EXPORT CUresult cuMemRelease(unsigned long long handle) {
    if (const CUresult error = enter("cuMemRelease"); error != success) {
        return error;
    }
    const std::lock_guard held(driver().lock);
    if (driver().created.count(handle) == 0) {
        return invalid_value;
    }
    let_go(handle);
    return success;
}

WEIR_FAKE_EXPORT CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                                   unsigned long long handle, unsigned long long flags) {
    if (const CUresult error = enter("cuMemMap"); error != success) {
        return error;
    }
    const std::lock_guard held(driver().lock);
    const auto memory = driver().created.find(handle);
    const auto range = driver().reserved.find(address);
    if (memory == driver().created.end() || range == driver().reserved.end() || range->second != bytes ||
        memory->second.bytes != bytes || offset != 0 || flags != 0 || driver().mapped.count(address) != 0) {
        return invalid_value;
    }
    ++memory->second.references;
    driver().mapped[address] = handle;
    driver().memory[address] = {address, bytes, memory_kind::device, memory->second.in, false, true};
    return success;
}

WEIR_FAKE_EXPORT CUresult cuMemSetAccess(CUdeviceptr address, std::size_t bytes, const permission* those,
                                         std::size_t count) {
    if (const CUresult error = enter("cuMemSetAccess"); error != success) {
        return error;
    }
    const std::lock_guard held(driver().lock);
    const auto found = driver().memory.find(address);
    if (driver().mapped.count(address) == 0 || found == driver().memory.end() || found->second.bytes != bytes) {
        return invalid_value;
    }
    bool by_itself = false;
    for (std::size_t i = 0; i < count; ++i) {
        if (those[i].at.type != 1 || those[i].flags != 3 || those[i].at.id < 0 ||
            static_cast<std::size_t>(those[i].at.id) >= driver().contexts.size()) {
            return invalid_value;
        }
        by_itself = by_itself || those[i].at.id == found->second.in->device;
    }
    for (std::size_t i = 0; i < count; ++i) {
        found->second.reached_by.insert(those[i].at.id);
    }
    if (by_itself) {
        ::mprotect(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE);
        std::memset(reinterpret_cast<void*>(address), 0xa5, std::min(bytes, std::size_t{4} << 20));
    }
    return success;
}

/// Answers for mapped memory only, as the driver does.
WEIR_FAKE_EXPORT CUresult cuMemGetAccess(unsigned long long* flags, const location* there, CUdeviceptr address) {
    if (const CUresult error = enter("cuMemGetAccess"); error != success) {
        return error;
    }
    const std::lock_guard held(driver().lock);
    const allocation* const of = allocation_at(address);
    if (of == nullptr || there == nullptr || there->type != 1) {
        return invalid_value;
    }
    *flags = of->is_mapped && of->reached_by.count(there->id) != 0 ? 3 : 0;
    return success;
}

WEIR_FAKE_EXPORT CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
    if (const CUresult error = enter("cuMemUnmap"); error != success) {
        return error;
    }
    const std::lock_guard held(driver().lock);
    const auto found = driver().mapped.find(address);
    if (found == driver().mapped.end() || driver().memory.at(address).bytes != bytes) {
        return invalid_value;
    }
    let_go(found->second);
    driver().mapped.erase(found);
    driver().memory.erase(address);
    put_out_of_reach(address, bytes);
    return success;
}
