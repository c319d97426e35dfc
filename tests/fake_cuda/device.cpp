// Devices, contexts and the texts of errors.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

#include "control.hpp"
#include "driver.hpp"

using namespace weir_fake;

namespace {

int number_from_environment(const char* name, int otherwise) {
    const char* const text = std::getenv(name);
    return text != nullptr && *text != '\0' ? std::atoi(text) : otherwise;
}

struct error_text {
    CUresult error;
    const char* name;
    const char* text;
};
constexpr error_text errors[] = {
    {success, "CUDA_SUCCESS", "no error"},
    {invalid_value, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {not_initialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {no_device, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {invalid_device, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {invalid_image, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {invalid_context, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {no_binary_for_gpu, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {peer_access_unsupported, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
     "peer access is not supported between these devices"},
    {invalid_ptx, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {invalid_handle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {not_found, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {not_ready, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {launch_timeout, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {peer_access_already_enabled, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {assertion_failed, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {launch_failed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {cooperative_launch_too_large, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
    {800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {not_supported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {907, "CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capturing stream"},
    {invalid_cluster_size, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "invalid cluster size"},
    {unknown, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const error_text* find(CUresult error) {
    for (const error_text& each : errors) {
        if (each.error == error) {
            return &each;
        }
    }
    return nullptr;
}

/// With the lock; null and the error if the driver was not started or has no such device.
context* device_context(CUdevice device, CUresult& error) {
    auto& all = driver().contexts;
    if (!driver().initialized) {
        error = not_initialized;
        return nullptr;
    }
    if (device < 0 || static_cast<std::size_t>(device) >= all.size()) {
        error = invalid_device;
        return nullptr;
    }
    error = success;
    return &all[static_cast<std::size_t>(device)];
}

/// With the lock.
int attribute_value(int which) {
    if (const auto wanted = driver().attributes.find(which); wanted != driver().attributes.end()) {
        return wanted->second;
    }
    switch (which) {
        case 1:
            return 1024;  // threads of a block
        case 2:
        case 3:
            return 1024;  // their x and y
        case 4:
            return 64;  // their z
        case 5:
            return 0x7fffffff;  // blocks in x
        case 6:
        case 7:
            return 65535;  // in y and z
        case 8:
            return 48 << 10;  // shared memory of a block
        case 10:
            return 32;  // threads of a warp
        case 16:
            return 4;  // multiprocessors
        case 19:
        case 41:
        case 83:
        case 89:
            return 1;  // mapped, unified, managed memory, touched by both at once
        case 31:
        case 40:
            return 1;  // concurrent kernels, asynchronous engines
        case 39:
            return 2048;  // threads of a multiprocessor
        case 75:
            return 9;  // compute capability 9.0
        case 76:
            return 0;
        case 95:
        case 120:
            return 1;  // cooperative launches, thread block clusters
        case 97:
            return 227 << 10;  // shared memory of a block that opts in
        case 102:
            return 1;  // virtual memory management
        case 115:
            return 1;  // memory pools
        case 122:
            return 1;  // 64-bit stream memory operations
        default:
            return 0;
    }
}

}  // namespace

WEIR_FAKE_EXPORT CUresult cuInit(unsigned flags) {
    if (const CUresult error = enter_safe("cuInit"); error != success) {
        return error;
    }
    if (flags != 0) {
        return invalid_value;
    }
    const std::lock_guard held(driver().lock);
    const int devices = number_from_environment("WEIR_FAKE_CUDA_DEVICES", 2);
    if (devices <= 0) {
        return no_device;
    }
    driver().initialized = true;
    while (driver().contexts.size() < static_cast<std::size_t>(devices)) {
        context& made = driver().contexts.emplace_back();
        made.device = static_cast<int>(driver().contexts.size()) - 1;
        made.memory_pool.of = &made;
        made.legacy = make_stream(made, stream_kind::legacy, 0, 0);
        made.recorder = make_stream(made, stream_kind::recorder, 0, 0);
    }
    return success;
}

WEIR_FAKE_EXPORT CUresult cuDriverGetVersion(int* version) {
    const CUresult error = enter_safe("cuDriverGetVersion");
    *version = number_from_environment("WEIR_FAKE_CUDA_VERSION", 13000);
    return error;
}

WEIR_FAKE_EXPORT CUresult cuGetErrorName(CUresult error, const char** text) {
    stop_if_told("cuGetErrorName");
    const error_text* const found = find(error);
    *text = found != nullptr ? found->name : nullptr;
    return found != nullptr ? success : invalid_value;
}

WEIR_FAKE_EXPORT CUresult cuGetErrorString(CUresult error, const char** text) {
    stop_if_told("cuGetErrorString");
    const error_text* const found = find(error);
    *text = found != nullptr ? found->text : nullptr;
    return found != nullptr ? success : invalid_value;
}

WEIR_FAKE_EXPORT CUresult cuDeviceGetCount(int* count) {
    if (const CUresult error = enter("cuDeviceGetCount"); error != success) {
        return error;
    }
    const std::lock_guard held(driver().lock);
    *count = static_cast<int>(driver().contexts.size());
    return driver().initialized ? success : not_initialized;
}

WEIR_FAKE_EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    CUresult error = enter("cuDeviceGet");
    if (error != success) {
        return error;
    }
    const std::lock_guard held(driver().lock);
    if (device_context(ordinal, error) != nullptr) {
        *device = ordinal;
    }
    return error;
}

WEIR_FAKE_EXPORT CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
    CUresult error = enter("cuDeviceGetName");
    if (error != success) {
        return error;
    }
    const std::lock_guard held(driver().lock);
    if (device_context(device, error) != nullptr && length > 0) {
        std::snprintf(name, static_cast<std::size_t>(length), "Device of threads %d", device);
    }
    return error;
}

WEIR_FAKE_EXPORT CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
    CUresult error = enter("cuDeviceTotalMem_v2");
    if (error != success) {
        return error;
    }
    const std::lock_guard held(driver().lock);
    if (device_context(device, error) != nullptr) {
        *bytes = driver().total_memory;
    }
    return error;
}

WEIR_FAKE_EXPORT CUresult cuDeviceGetAttribute(int* value, int which, CUdevice device) {
    CUresult error = enter("cuDeviceGetAttribute");
    if (error != success) {
        return error;
    }
    const std::lock_guard held(driver().lock);
    if (device_context(device, error) != nullptr) {
        *value = attribute_value(which);
    }
    return error;
}

WEIR_FAKE_EXPORT CUresult cuDeviceCanAccessPeer(int* can, CUdevice from, CUdevice to) {
    CUresult error = enter("cuDeviceCanAccessPeer");
    if (error != success) {
        return error;
    }
    const std::lock_guard held(driver().lock);
    if (device_context(from, error) != nullptr && device_context(to, error) != nullptr) {
        *can = from != to && number_from_environment("WEIR_FAKE_CUDA_PEERS", 1) != 0 ? 1 : 0;
    }
    return error;
}

WEIR_FAKE_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* made, CUdevice device) {
    CUresult error = enter("cuDevicePrimaryCtxRetain");
    if (error != success) {
        return error;
    }
    const std::lock_guard held(driver().lock);
    if (context* const found = device_context(device, error)) {
        ++found->references;
        *made = found;
    }
    return error;
}

WEIR_FAKE_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
    CUresult error = enter("cuDevicePrimaryCtxGetState");
    if (error != success) {
        return error;
    }
    const std::lock_guard held(driver().lock);
    if (const context* const found = device_context(device, error)) {
        *flags = 0;
        *active = found->references != 0 ? 1 : 0;
    }
    return error;
}

WEIR_FAKE_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    CUresult error = enter("cuDevicePrimaryCtxRelease_v2");
    if (error != success) {
        return error;
    }
    std::unique_lock held(driver().lock);
    if (context* const found = device_context(device, error)) {
        if (found->references == 0) {
            return invalid_context;
        }
        if (found->references == 1) {
            drain(held, *found);
        }
        --found->references;
    }
    return error;
}

WEIR_FAKE_EXPORT CUresult cuCtxGetCurrent(CUcontext* current) {
    const CUresult error = enter_safe("cuCtxGetCurrent");
    *current = current_context();
    return error;
}

WEIR_FAKE_EXPORT CUresult cuCtxSetCurrent(CUcontext current) {
    if (const CUresult error = enter_safe("cuCtxSetCurrent"); error != success) {
        return error;
    }
    const std::lock_guard held(driver().lock);
    if (current != nullptr && current->references == 0) {
        return invalid_context;
    }
    current_context() = current;
    return success;
}

WEIR_FAKE_EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
    call in("cuCtxEnablePeerAccess");
    if (in.failed()) {
        return in.error();
    }
    if (flags != 0) {
        return invalid_value;
    }
    if (peer == nullptr || peer == &in.in()) {
        return invalid_context;
    }
    return in.in().peers.insert(peer->device).second ? success : peer_access_already_enabled;
}

WEIR_FAKE_EXPORT CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    call in("cuCtxGetStreamPriorityRange");
    if (!in.failed()) {
        *least = 0;
        *greatest = -5;
    }
    return in.error();
}

WEIR_FAKE_EXPORT CUresult cuCtxSynchronize() {
    call in("cuCtxSynchronize");
    if (in.failed()) {
        return in.error();
    }
    drain(in.lock(), in.in());
    trim_on_wait(in.in());
    return in.outcome();
}

void weir_fake_break(int error) {
    const std::lock_guard held(driver().lock);
    driver().error = error;
    wake_all();
}

void weir_fake_ignore_handles(int whether) {
    const std::lock_guard held(driver().lock);
    driver().ignores_handles = whether != 0;
}

void weir_fake_set_attribute(int which, int value) {
    const std::lock_guard held(driver().lock);
    driver().attributes[which] = value;
}

void weir_fake_heal() {
    std::unique_lock held(driver().lock);
    // Dropped objects are gone before the first new work comes.
    std::vector<point> all;
    for (const context& of : driver().contexts) {
        all.insert(all.end(), {tail(of.legacy), tail(of.recorder)});
        for (const auto& each : of.streams) {
            all.push_back(tail(each));
        }
    }
    for (const point& each : all) {
        while (!each.reached()) {
            each.of->changed.wait(held);
        }
    }
    driver().error = success;
}
