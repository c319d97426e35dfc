// Copies and fills.
#include <cstring>

#include "driver.hpp"

using namespace weir_fake;

namespace {

bool is_device(const allocation* what) { return what != nullptr && what->kind != memory_kind::pinned; }

/// Whether the range of addresses is entirely in one allocation of the driver's, or in ordinary memory of the host.
bool sound(std::uintptr_t address, std::size_t bytes) {
    return allocation_at(address) == nullptr || allocation_at(address, bytes) != nullptr;
}

/// `direct`: the copy may run while the host goes on.
CUresult copy(call& in, const std::shared_ptr<stream>& on, std::uintptr_t to, std::uintptr_t from, std::size_t bytes,
              bool direct) {
    const point done = enqueue(in.lock(), on, {{}, [to, from, bytes] {
                                                   std::memmove(reinterpret_cast<void*>(to),
                                                                reinterpret_cast<const void*>(from), bytes);
                                                   return success;
                                               }});
    if (direct) {
        return success;
    }
    wait_for(in.lock(), done);
    return driver().error;
}

template <class Value>
CUresult fill(const char* name, CUdeviceptr to, Value value, std::size_t count, CUstream handle) {
    call in(name);
    const auto on = in.failed() ? nullptr : in.stream_of(handle);
    if (!on || count == 0) {
        return in.error();
    }
    if (to % sizeof(Value) != 0 || count > SIZE_MAX / sizeof(Value) ||
        allocation_at(to, count * sizeof(Value)) == nullptr) {
        return invalid_value;
    }
    enqueue(in.lock(), on, {{}, [to, value, count] {
                                auto* const values = reinterpret_cast<Value*>(to);
                                for (std::size_t i = 0; i < count; ++i) {
                                    values[i] = value;
                                }
                                return success;
                            }});
    return success;
}

}  // namespace

WEIR_FAKE_EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream handle) {
    call in("cuMemcpyAsync");
    const auto on = in.failed() ? nullptr : in.stream_of(handle);
    if (!on || bytes == 0) {
        return in.error();
    }
    if (!sound(to, bytes) || !sound(from, bytes)) {
        return invalid_value;
    }
    const allocation* const target = allocation_at(to);
    const allocation* const source = allocation_at(from);
    // Memory that the device may not touch needs cuMemcpyPeerAsync, unless it is plain memory.
    const auto refuses = [&](const allocation* what) {
        return what != nullptr && (what->is_mapped || what->from_pool) && !reaches(*on->in, *what);
    };
    if (refuses(target) || refuses(source)) {
        return invalid_value;
    }
    // From host to host, and to or from ordinary memory: synchronous.
    const bool direct = target != nullptr && source != nullptr && (is_device(target) || is_device(source));
    return copy(in, on, to, from, bytes, direct);
}

WEIR_FAKE_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, CUstream handle) {
    call in("cuMemcpyHtoDAsync_v2");
    const auto on = in.failed() ? nullptr : in.stream_of(handle);
    if (!on || bytes == 0) {
        return in.error();
    }
    const auto source = reinterpret_cast<std::uintptr_t>(from);
    if (allocation_at(to, bytes) == nullptr || from == nullptr || !sound(source, bytes)) {
        return invalid_value;
    }
    return copy(in, on, to, source, bytes, allocation_at(source) != nullptr);
}

WEIR_FAKE_EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream handle) {
    call in("cuMemcpyDtoHAsync_v2");
    const auto on = in.failed() ? nullptr : in.stream_of(handle);
    if (!on || bytes == 0) {
        return in.error();
    }
    const auto target = reinterpret_cast<std::uintptr_t>(to);
    if (allocation_at(from, bytes) == nullptr || to == nullptr || !sound(target, bytes)) {
        return invalid_value;
    }
    return copy(in, on, target, from, bytes, allocation_at(target) != nullptr);
}

WEIR_FAKE_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                            CUcontext from_context, std::size_t bytes, CUstream handle) {
    call in("cuMemcpyPeerAsync");
    const auto on = in.failed() ? nullptr : in.stream_of(handle);
    if (!on || bytes == 0) {
        return in.error();
    }
    const allocation* const target = allocation_at(to, bytes);
    const allocation* const source = allocation_at(from, bytes);
    if (target == nullptr || source == nullptr || target->in != to_context || source->in != from_context) {
        return invalid_value;
    }
    return copy(in, on, to, from, bytes, true);
}

WEIR_FAKE_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream handle) {
    return fill("cuMemsetD8Async", to, value, count, handle);
}

WEIR_FAKE_EXPORT CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, std::size_t count, CUstream handle) {
    return fill("cuMemsetD16Async", to, value, count, handle);
}

WEIR_FAKE_EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream handle) {
    return fill("cuMemsetD32Async", to, value, count, handle);
}
