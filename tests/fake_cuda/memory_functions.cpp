// cuMem*: allocation, freeing, and the attributes of pointers.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "capture.hpp"
#include "control.hpp"
#include "driver.hpp"

using namespace weir_fake;

namespace {

/// Pages of its own for every allocation, so that a use after it was freed faults.
std::uintptr_t map_pages(std::size_t bytes) {
    void* const pages =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return pages == MAP_FAILED ? 0 : reinterpret_cast<std::uintptr_t>(pages);
}

/// Allocated memory is not zero, so that a read before the first write is detected: at the beginning at least, since
/// pages that are never touched cost nothing.
void spoil(std::uintptr_t address, std::size_t bytes) {
    std::memset(reinterpret_cast<void*>(address), 0xa5, std::min(bytes, std::size_t{4} << 20));
}

void* address_of(const allocation& what) { return reinterpret_cast<void*>(what.address); }

void trim(pool& what, std::uint64_t keep) {
    while (!what.kept.empty() && what.reserved > keep) {
        const allocation gone = what.kept.front();
        what.kept.pop_front();
        what.reserved -= gone.bytes;
        ::munmap(address_of(gone), gone.bytes);
    }
}

CUresult allocate(call& in, CUdeviceptr* made, std::size_t bytes, memory_kind kind) {
    if (bytes == 0) {
        return invalid_value;
    }
    context& of = in.in();
    const bool on_device = kind != memory_kind::pinned;
    if (on_device && bytes > free_bytes(of)) {
        trim(of.memory_pool, 0);
    }
    const std::uintptr_t address = on_device && bytes > free_bytes(of) ? 0 : map_pages(bytes);
    if (address == 0) {
        return out_of_memory;
    }
    spoil(address, bytes);
    driver().memory[address] = {address, bytes, kind, &of, false};
    of.used += on_device ? bytes : 0;
    *made = address;
    return success;
}

/// Removes the memory from the tables. With the lock.
void free_now(const allocation what) {
    driver().memory.erase(what.address);
    if (what.from_pool) {
        // Kept for the next allocation, and inaccessible.
        pool& of = what.in->memory_pool;
        of.used -= what.bytes;
        ::mmap(address_of(what), what.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        of.kept.push_back(what);
        return;
    }
    if (what.kind != memory_kind::pinned) {
        what.in->used -= what.bytes;
    }
    ::munmap(address_of(what), what.bytes);
}

/// cuMemFree and cuMemFreeHost: after all work of the device.
CUresult free_after_all(call& in, std::uintptr_t address, bool pinned) {
    const auto found = driver().memory.find(address);
    if (found == driver().memory.end() || (found->second.kind == memory_kind::pinned) != pinned ||
        driver().mapped.count(address) != 0) {
        return invalid_value;
    }
    context& of = *found->second.in;
    drain(in.lock(), of);
    if (driver().error != success) {
        return driver().error;
    }
    const auto still = driver().memory.find(address);
    if (still == driver().memory.end()) {
        return invalid_value;
    }
    free_now(still->second);
    return success;
}

}  // namespace

namespace weir_fake {

std::size_t free_bytes(const context& in) {
    const std::size_t used = in.used + in.memory_pool.reserved;
    return driver().total_memory > used ? driver().total_memory - used : 0;
}

void trim_on_wait(context& in) { trim(in.memory_pool, in.memory_pool.release_threshold); }

}  // namespace weir_fake

WEIR_FAKE_EXPORT CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
    call in("cuMemGetInfo_v2");
    if (!in.failed()) {
        *free = free_bytes(in.in());
        *total = driver().total_memory;
    }
    return in.error();
}

WEIR_FAKE_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* made, std::size_t bytes) {
    call in("cuMemAlloc_v2");
    return in.failed() ? in.error() : allocate(in, made, bytes, memory_kind::device);
}

WEIR_FAKE_EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
    call in("cuMemFree_v2");
    if (in.failed() || address == 0) {
        return in.error();
    }
    return free_after_all(in, address, false);
}

WEIR_FAKE_EXPORT CUresult cuMemAllocManaged(CUdeviceptr* made, std::size_t bytes, unsigned flags) {
    call in("cuMemAllocManaged");
    if (in.failed()) {
        return in.error();
    }
    return flags != 1 && flags != 2 ? invalid_value : allocate(in, made, bytes, memory_kind::managed);
}

WEIR_FAKE_EXPORT CUresult cuMemAllocAsync(CUdeviceptr* made, std::size_t bytes, CUstream handle) {
    call in("cuMemAllocAsync");
    const auto on = in.failed() ? nullptr : in.stream_of(handle);
    if (!on) {
        return in.error();
    }
    if (const CUresult refused = on->captured == nullptr ? refused_as_unsafe() : success; refused != success) {
        return refused;
    }
    if (bytes == 0) {
        return invalid_value;
    }
    context& of = *on->in;
    pool& from = of.memory_pool;
    allocation got{0, bytes, memory_kind::device, &of, true};
    // The latest free block of this size.
    const auto kept = std::find_if(from.kept.rbegin(), from.kept.rend(),
                                   [bytes](const allocation& each) { return each.bytes == bytes; });
    if (kept != from.kept.rend()) {
        got = *kept;
        from.kept.erase(std::next(kept).base());
        ::mprotect(address_of(got), got.bytes, PROT_READ | PROT_WRITE);
    } else {
        if (bytes > free_bytes(of)) {
            trim(from, from.used);
        }
        got.address = bytes > free_bytes(of) ? 0 : map_pages(bytes);
        if (got.address == 0) {
            return out_of_memory;
        }
        from.reserved += bytes;
    }
    from.used += bytes;
    spoil(got.address, bytes);
    driver().memory[got.address] = got;
    *made = got.address;
    enqueue(in.lock(), on, {});
    return success;
}

WEIR_FAKE_EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
    call in("cuMemFreeAsync");
    const auto on = in.failed() ? nullptr : in.stream_of(handle);
    if (!on || address == 0) {
        return in.error();
    }
    if (const CUresult refused = on->captured == nullptr ? refused_as_unsafe() : success; refused != success) {
        return refused;
    }
    const auto found = driver().memory.find(address);
    if (found == driver().memory.end() || found->second.kind == memory_kind::pinned ||
        driver().mapped.count(address) != 0) {
        return invalid_value;
    }
    enqueue(in.lock(), on, {{}, [address] {
                                const std::lock_guard held(driver().lock);
                                const auto still = driver().memory.find(address);
                                if (still == driver().memory.end()) {
                                    return CUresult{700};  // freed twice
                                }
                                free_now(still->second);
                                return success;
                            }});
    return success;
}

WEIR_FAKE_EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* found, CUdevice device) {
    if (const CUresult error = enter("cuDeviceGetDefaultMemPool"); error != success) {
        return error;
    }
    const std::lock_guard held(driver().lock);
    if (device < 0 || static_cast<std::size_t>(device) >= driver().contexts.size()) {
        return invalid_device;
    }
    *found = &driver().contexts[static_cast<std::size_t>(device)].memory_pool;
    return success;
}

WEIR_FAKE_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool of, std::size_t keep) {
    if (const CUresult error = enter("cuMemPoolTrimTo"); error != success) {
        return error;
    }
    const std::lock_guard held(driver().lock);
    if (const CUresult refused = refused_in_capture("cuMemPoolTrimTo", nullptr); refused != success) {
        return refused;
    }
    trim(*of, keep);
    return success;
}

namespace {
enum pool_attribute { release_threshold = 4, reserved_now = 5, used_now = 7 };
}

WEIR_FAKE_EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool of, int which, void* value) {
    if (const CUresult error = enter("cuMemPoolGetAttribute"); error != success) {
        return error;
    }
    const std::lock_guard held(driver().lock);
    if (const CUresult refused = refused_in_capture("cuMemPoolGetAttribute", nullptr); refused != success) {
        return refused;
    }
    auto& to = *static_cast<std::uint64_t*>(value);
    switch (which) {
        case release_threshold:
            to = of->release_threshold;
            return success;
        case reserved_now:
            to = of->reserved;
            return success;
        case used_now:
            to = of->used;
            return success;
        default:
            return invalid_value;
    }
}

WEIR_FAKE_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool of, int which, void* value) {
    if (const CUresult error = enter("cuMemPoolSetAttribute"); error != success) {
        return error;
    }
    const std::lock_guard held(driver().lock);
    if (const CUresult refused = refused_in_capture("cuMemPoolSetAttribute", nullptr); refused != success) {
        return refused;
    }
    if (which != release_threshold) {
        return invalid_value;
    }
    of->release_threshold = *static_cast<const std::uint64_t*>(value);
    return success;
}

WEIR_FAKE_EXPORT CUresult cuMemHostAlloc(void** made, std::size_t bytes, unsigned flags) {
    call in("cuMemHostAlloc");
    if (in.failed()) {
        return in.error();
    }
    if ((flags & ~7U) != 0) {
        return invalid_value;
    }
    CUdeviceptr address = 0;
    const CUresult error = allocate(in, &address, bytes, memory_kind::pinned);
    if (error == success) {
        *made = reinterpret_cast<void*>(address);
    }
    return error;
}

WEIR_FAKE_EXPORT CUresult cuMemFreeHost(void* address) {
    call in("cuMemFreeHost");
    return in.failed() ? in.error() : free_after_all(in, reinterpret_cast<std::uintptr_t>(address), true);
}

WEIR_FAKE_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* found, void* host, unsigned flags) {
    call in("cuMemHostGetDevicePointer_v2");
    if (in.failed()) {
        return in.error();
    }
    const allocation* const of = allocation_at(reinterpret_cast<std::uintptr_t>(host));
    if (flags != 0 || of == nullptr || of->kind == memory_kind::device) {
        return invalid_value;
    }
    *found = reinterpret_cast<std::uintptr_t>(host);
    return success;
}

WEIR_FAKE_EXPORT CUresult cuPointerGetAttribute(void* value, int which, CUdeviceptr address) {
    call in("cuPointerGetAttribute");
    if (in.failed()) {
        return in.error();
    }
    const allocation* const of = allocation_at(address);
    if (of == nullptr) {
        return invalid_value;  // ordinary memory of the host
    }
    switch (which) {
        case 1:
            *static_cast<context**>(value) = of->in;
            return success;
        case 2:
            *static_cast<unsigned*>(value) = of->kind == memory_kind::pinned ? 1 : 2;
            return success;
        case 3:
            *static_cast<CUdeviceptr*>(value) = address;
            return success;
        case 4:
            if (of->kind == memory_kind::device) {
                return invalid_value;
            }
            *static_cast<void**>(value) = reinterpret_cast<void*>(address);
            return success;
        case 8:
            *static_cast<unsigned*>(value) = of->kind == memory_kind::managed ? 1 : 0;
            return success;
        case 9:
            *static_cast<int*>(value) = of->in->device;
            return success;
        default:
            return invalid_value;
    }
}
