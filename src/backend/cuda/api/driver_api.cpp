#include "backend/cuda/api/driver_api.hpp"

#include <dlfcn.h>

#include <cstdint>

#include "backend/fork_gate.hpp"
#include "base/setting.hpp"
#include "weir/detail/fork_section.hpp"
#include "weir/error.hpp"

namespace weir::backend::cuda {

namespace {

/// Finds functions under the driver's names.
struct symbol_finder {
    void* library;
    const char* missing = nullptr;

    template <class Function>
    void find(Function*& function, const char* name) {
        try_find(function, name);
        if (function == nullptr && missing == nullptr) {
            missing = name;
        }
    }
    template <class Function>
    void try_find(Function*& function, const char* name) const {
        function = reinterpret_cast<Function*>(::dlsym(library, name));
    }
};

const char* find_all(void* library, driver_api& api) {
    symbol_finder in{library};
    in.find(api.init, "cuInit");
    in.find(api.driver_version, "cuDriverGetVersion");
    in.find(api.error_name, "cuGetErrorName");
    in.find(api.error_string, "cuGetErrorString");
    in.find(api.device_count, "cuDeviceGetCount");
    in.find(api.device_get, "cuDeviceGet");
    in.find(api.device_name, "cuDeviceGetName");
    in.find(api.device_total_memory, "cuDeviceTotalMem_v2");
    in.find(api.device_attribute, "cuDeviceGetAttribute");
    in.find(api.device_can_access_peer, "cuDeviceCanAccessPeer");
    in.find(api.primary_context_retain, "cuDevicePrimaryCtxRetain");
    in.find(api.primary_context_state, "cuDevicePrimaryCtxGetState");
    in.find(api.context_get_current, "cuCtxGetCurrent");
    in.find(api.context_set_current, "cuCtxSetCurrent");
    in.find(api.context_enable_peer_access, "cuCtxEnablePeerAccess");
    in.find(api.context_priority_range, "cuCtxGetStreamPriorityRange");
    in.find(api.context_synchronize, "cuCtxSynchronize");
    in.find(api.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
    in.try_find(api.context_record_event, "cuCtxRecordEvent");

    in.find(api.stream_create, "cuStreamCreateWithPriority");
    in.find(api.stream_destroy, "cuStreamDestroy_v2");
    in.try_find(api.stream_id, "cuStreamGetId");
    in.find(api.stream_context, "cuStreamGetCtx");
    in.find(api.stream_flags, "cuStreamGetFlags");
    in.find(api.stream_priority, "cuStreamGetPriority");
    in.find(api.stream_query, "cuStreamQuery");
    in.find(api.stream_synchronize, "cuStreamSynchronize");
    in.find(api.stream_is_capturing, "cuStreamIsCapturing");
    in.find(api.stream_wait_event, "cuStreamWaitEvent");
    in.find(api.stream_write_value, "cuStreamWriteValue64_v2");
    in.find(api.stream_wait_value, "cuStreamWaitValue64_v2");
    in.find(api.event_create, "cuEventCreate");
    in.find(api.event_destroy, "cuEventDestroy_v2");
    in.find(api.event_record, "cuEventRecord");
    in.find(api.event_query, "cuEventQuery");
    in.find(api.event_synchronize, "cuEventSynchronize");
    in.find(api.event_elapsed, "cuEventElapsedTime");

    in.find(api.memory_info, "cuMemGetInfo_v2");
    in.find(api.memory_alloc, "cuMemAlloc_v2");
    in.find(api.memory_free, "cuMemFree_v2");
    in.find(api.memory_alloc_managed, "cuMemAllocManaged");
    in.find(api.memory_alloc_async, "cuMemAllocAsync");
    in.find(api.memory_free_async, "cuMemFreeAsync");
    in.find(api.device_default_pool, "cuDeviceGetDefaultMemPool");
    in.find(api.pool_trim, "cuMemPoolTrimTo");
    in.find(api.pool_get_attribute, "cuMemPoolGetAttribute");
    in.find(api.pool_set_attribute, "cuMemPoolSetAttribute");
    in.try_find(api.allocation_granularity, "cuMemGetAllocationGranularity");
    in.try_find(api.address_reserve, "cuMemAddressReserve");
    in.try_find(api.address_free, "cuMemAddressFree");
    in.try_find(api.memory_create, "cuMemCreate");
    in.try_find(api.memory_release, "cuMemRelease");
    in.try_find(api.memory_map, "cuMemMap");
    in.try_find(api.memory_unmap, "cuMemUnmap");
    in.try_find(api.memory_set_access, "cuMemSetAccess");
    in.try_find(api.memory_access, "cuMemGetAccess");
    in.find(api.host_alloc, "cuMemHostAlloc");
    in.find(api.host_free, "cuMemFreeHost");
    in.find(api.host_device_pointer, "cuMemHostGetDevicePointer_v2");
    in.find(api.pointer_get_attribute, "cuPointerGetAttribute");
    in.find(api.copy_async, "cuMemcpyAsync");
    in.find(api.copy_to_device_async, "cuMemcpyHtoDAsync_v2");
    in.find(api.copy_to_host_async, "cuMemcpyDtoHAsync_v2");
    in.find(api.copy_peer_async, "cuMemcpyPeerAsync");
    in.find(api.fill8_async, "cuMemsetD8Async");
    in.find(api.fill16_async, "cuMemsetD16Async");
    in.find(api.fill32_async, "cuMemsetD32Async");

    in.find(api.module_load, "cuModuleLoadDataEx");
    in.find(api.module_unload, "cuModuleUnload");
    in.find(api.module_function, "cuModuleGetFunction");
    in.find(api.function_get_attribute, "cuFuncGetAttribute");
    in.find(api.function_set_attribute, "cuFuncSetAttribute");
    in.find(api.launch, "cuLaunchKernel");
    in.find(api.most_active_blocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    in.try_find(api.launch_as, "cuLaunchKernelEx");
    in.try_find(api.function_load, "cuFuncLoad");
    in.try_find(api.function_parameter, "cuFuncGetParamInfo");
    in.try_find(api.function_parameter_count, "cuFuncGetParamCount");
    in.try_find(api.function_name, "cuFuncGetName");
    return in.missing;
}

std::string version_text(int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// Initializes a driver and asks it for its version and devices.
opened_driver start(const driver_api& api, const std::string& file) {
    opened_driver opened;
    const auto fails = [&](const char* call, result answer) {
        if (answer != success) {
            opened.why_not = answer == error_no_device ? "the CUDA driver finds no device"
                                                       : "the CUDA driver (" + file + ") does not start: " + call +
                                                             " failed: " + describe(api, answer);
        }
        return answer != success;
    };
    if (fails("cuInit", api.init(0)) || fails("cuDriverGetVersion", api.driver_version(&opened.version))) {
        return opened;
    }
    if (opened.version < smallest_driver_version) {
        opened.why_not = "the CUDA driver is for CUDA " + version_text(opened.version) + ", and Weir needs " +
                         version_text(smallest_driver_version) + " or later: install a newer driver";
        return opened;
    }
    if (fails("cuDeviceGetCount", api.device_count(&opened.devices))) {
        opened.devices = 0;
        return opened;
    }
    if (opened.devices == 0) {
        opened.why_not = "the CUDA driver finds no device";
        return opened;
    }
    opened.api = &api;
    return opened;
}

opened_driver open() {
    const char* const other = detail::setting("WEIR_CUDA_DRIVER").value();
    const std::string file = other != nullptr ? other : "libcuda.so.1";
    opened_driver opened;
    void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* const text = ::dlerror();
        const std::string why = text != nullptr ? text : file;
        opened.why_not = other != nullptr ? "the CUDA driver that WEIR_CUDA_DRIVER names cannot be opened (" + why +
                                                "): name another file, or unset it to use the machine's driver"
                                          : "there is no CUDA driver on this machine (" + why + ")";
        return opened;
    }
    static driver_api api;
    if (const char* const missing = find_all(library, api)) {
        opened.why_not = file + " has no function " + missing + ": install the driver for CUDA " +
                         version_text(smallest_driver_version) + " or later";
        return opened;
    }
    return start(api, file);
}

constexpr std::uint64_t no_process = ~std::uint64_t{0};
std::uint64_t opened_in = no_process;  ///< process that opened the driver

}  // namespace

const opened_driver& machine_driver() {
    // Without it a child of a fork could wait for a thread that opens the driver and that the child does not have.
    const detail::fork_section whole;
    static const auto* const opened = [] {
        const auto* const made = new opened_driver(open());  // never destroyed
        opened_in = made->api == nullptr ? no_process : fork_gate::generation();
        return made;
    }();
    return *opened;
}

bool is_driver_of_parent() noexcept { return opened_in != no_process && opened_in != fork_gate::generation(); }

std::string describe(const driver_api& api, result what) {
    const char* name = nullptr;
    const char* text = nullptr;
    if (api.error_name(what, &name) != success || name == nullptr) {
        return "CUDA error " + std::to_string(what);
    }
    api.error_string(what, &text);
    return std::string(name) + (text != nullptr ? " (" + std::string(text) + ")" : "");
}

bool is_sticky(result what) noexcept {
    switch (what) {
        case error_deinitialized:
        case 214:
        case 220:
        case 226:
        case 700:
        case 702:
        case 709:
        case 710:
        case 714:
        case 715:
        case 716:
        case 717:
        case 718:
        case 719:
        case 721:
        case 810:
        case 911:
        case 999:
            return true;
        default:
            return false;
    }
}

void refuse(const driver_api& api, result what, const char* call) {
    const std::string message =
        std::string(call) + " failed: " + describe(api, what) + (is_sticky(what) ? what_a_sticky_error_means : "");
    if (what == error_out_of_memory) {
        throw out_of_memory(message);
    }
    throw device_error(message);
}

}  // namespace weir::backend::cuda
