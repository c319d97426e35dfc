// The folder backend/cuda/ runs work on NVIDIA's accelerators through the CUDA driver API, which is opened at run time:
// this builds without a toolkit and runs without a GPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "backend/capability/kernels.hpp"
#include "weir/detail/launch_shape.hpp"

namespace weir::backend::cuda {

// The driver's types and values, declared here anew (CUDA Driver API reference manual, 13.0). Handles are opaque.
using result = int;         ///< CUresult
using device_number = int;  ///< CUdevice
using context_handle = struct opaque_context*;
using stream_handle = struct opaque_stream*;
using event_handle = struct opaque_event*;
using module_handle = struct opaque_module*;
using capability::function_handle;
using pool_handle = struct opaque_pool*;
using device_pointer = std::uint64_t;  ///< CUdeviceptr
using allocation_handle = std::uint64_t;

/// An address in the form that the driver expects.
[[nodiscard]] inline device_pointer address_of(const void* memory) noexcept {
    return reinterpret_cast<device_pointer>(memory);
}

inline constexpr result success = 0;
inline constexpr result error_invalid_value = 1;
inline constexpr result error_out_of_memory = 2;
inline constexpr result error_deinitialized = 4;
inline constexpr result error_no_device = 100;
inline constexpr result error_invalid_context = 201;
inline constexpr result error_invalid_handle = 400;
inline constexpr result error_not_found = 500;
inline constexpr result error_not_ready = 600;
inline constexpr result error_peer_access_already_enabled = 704;
inline constexpr result error_not_permitted = 800;
inline constexpr result error_not_supported = 801;
inline constexpr result error_capture_invalidated = 901;
inline constexpr result error_capture_implicit = 906;

inline constexpr unsigned stream_default = 0;
inline constexpr unsigned stream_non_blocking = 1;
inline constexpr unsigned event_disable_timing = 2;
inline constexpr unsigned host_alloc_portable = 1;
inline constexpr unsigned host_alloc_mapped = 2;
inline constexpr unsigned memory_attach_global = 1;
inline constexpr unsigned wait_value_greater_or_equal = 0;
inline constexpr int capture_mode_relaxed = 2;
inline stream_handle legacy_stream() noexcept { return reinterpret_cast<stream_handle>(std::uintptr_t{1}); }
inline stream_handle per_thread_stream() noexcept { return reinterpret_cast<stream_handle>(std::uintptr_t{2}); }

/// CUdevice_attribute.
enum class device_attribute : int {
    max_threads_per_block = 1,
    max_block_x = 2,
    max_block_y = 3,
    max_block_z = 4,
    max_grid_x = 5,
    max_grid_y = 6,
    max_grid_z = 7,
    max_shared_bytes_per_block = 8,
    multiprocessor_count = 16,
    can_map_host_memory = 19,
    pci_bus = 33,
    pci_device = 34,
    unified_addressing = 41,
    pci_domain = 50,
    compute_capability_major = 75,
    compute_capability_minor = 76,
    managed_memory = 83,
    concurrent_managed_access = 89,
    cooperative_launch = 95,
    max_shared_bytes_per_block_opt_in = 97,
    can_use_64_bit_stream_memory_operations = 122,
    virtual_memory_management = 102,
    gpu_direct_rdma_with_virtual_memory = 110,
    memory_pools_supported = 115,
    cluster_launch = 120,
};

/// CUpointer_attribute.
enum class pointer_attribute : int {
    context = 1,
    memory_type = 2,
    on_device = 3,
    on_host = 4,
    is_managed = 8,
    device_ordinal = 9
};
/// CUmemorytype.
inline constexpr unsigned memory_type_host = 1;
inline constexpr unsigned memory_type_device = 2;

/// CUfunction_attribute.
enum class function_attribute : int { max_threads_per_block = 0, shared_size = 1, max_dynamic_shared_size = 8 };

/// CUmemPool_attribute.
enum class pool_attribute : int { release_threshold = 4, reserved_now = 5, used_now = 7 };

/// CUmemLocation: a device.
struct memory_location {
    int type = 1;  ///< CU_MEM_LOCATION_TYPE_DEVICE
    int id = 0;
};
/// CUmemAllocationProp: memory of a device.
struct allocation_properties {
    int type = 1;  ///< CU_MEM_ALLOCATION_TYPE_PINNED
    int handle_types = 0;
    memory_location location;
    void* win32_metadata = nullptr;
    unsigned char compression = 0;
    unsigned char gpu_direct_rdma = 0;  ///< network cards may reach it
    unsigned short usage = 0;
    unsigned char reserved[4] = {};
};
static_assert(sizeof(allocation_properties) == 32);
/// CU_MEM_ACCESS_FLAGS_PROT_READWRITE.
inline constexpr int access_read_write = 3;
/// CUmemAccessDesc: a device that may read and write.
struct access_permission {
    memory_location location;
    int flags = access_read_write;
};
inline constexpr int granularity_minimum = 0;

/// CUlaunchConfig: how a kernel is launched, and where.
using detail::launch_shape;
static_assert(offsetof(launch_shape, stream) == 32 && offsetof(launch_shape, attribute_count) == 48);

/// CUlaunchAttribute: one that Weir sets.
struct launch_attribute {
    static constexpr int cooperative = 2;
    static constexpr int cluster_dimension = 4;

    int id = 0;
    int padding = 0;
    std::array<unsigned, 16> value{};  ///< a cluster's blocks along x, y and z; 1 for a cooperative launch
};
static_assert(sizeof(launch_attribute) == 72);

/// The functions of the CUDA driver. Names are the driver's, without the prefix "cu" and without the version suffix, which selects
/// one of several interfaces of the same name: "_v2" is the one with 64-bit sizes, or the later semantics.
///
/// Pointers that may be null are marked; all others are set. Tests provide a library of their own (WEIR_CUDA_DRIVER).
struct alignas(64) driver_api {
    // Called for every operation: on one cache line
    result (*launch_as)(const launch_shape*, function_handle, void** arguments,
                        void** extra) = nullptr;  ///< driver 11.8 and later; may be null
    result (*event_record)(event_handle, stream_handle) = nullptr;
    result (*stream_wait_event)(stream_handle, event_handle, unsigned flags) = nullptr;
    result (*context_get_current)(context_handle*) = nullptr;
    result (*context_set_current)(context_handle) = nullptr;
    result (*exchange_capture_mode)(int* mode) = nullptr;
    result (*event_query)(event_handle) = nullptr;
    result (*event_synchronize)(event_handle) = nullptr;

    // Device and context
    result (*init)(unsigned flags) = nullptr;
    result (*driver_version)(int* version) = nullptr;
    result (*error_name)(result, const char** text) = nullptr;
    result (*error_string)(result, const char** text) = nullptr;
    result (*device_count)(int* count) = nullptr;
    result (*device_get)(device_number*, int ordinal) = nullptr;
    result (*device_name)(char* name, int length, device_number) = nullptr;
    result (*device_total_memory)(std::size_t* bytes, device_number) = nullptr;
    result (*device_attribute)(int* value, enum device_attribute, device_number) = nullptr;
    result (*device_can_access_peer)(int* can, device_number from, device_number to) = nullptr;
    result (*primary_context_retain)(context_handle*, device_number) = nullptr;
    result (*primary_context_state)(device_number, unsigned* flags, int* active) = nullptr;
    result (*context_enable_peer_access)(context_handle, unsigned flags) = nullptr;
    result (*context_priority_range)(int* least, int* greatest) = nullptr;
    result (*context_synchronize)() = nullptr;
    result (*context_record_event)(context_handle, event_handle) = nullptr;  ///< driver 12.5 and later; may be null

    // Streams and events
    result (*stream_create)(stream_handle*, unsigned flags, int priority) = nullptr;
    result (*stream_destroy)(stream_handle) = nullptr;
    result (*stream_id)(stream_handle, unsigned long long* id) = nullptr;  ///< driver 12.0 and later; may be null
    result (*stream_context)(stream_handle, context_handle*) = nullptr;
    result (*stream_flags)(stream_handle, unsigned* flags) = nullptr;
    result (*stream_priority)(stream_handle, int* priority) = nullptr;
    result (*stream_query)(stream_handle) = nullptr;
    result (*stream_synchronize)(stream_handle) = nullptr;
    result (*stream_is_capturing)(stream_handle, int* status) = nullptr;
    result (*stream_write_value)(stream_handle, device_pointer, std::uint64_t value, unsigned flags) = nullptr;
    result (*stream_wait_value)(stream_handle, device_pointer, std::uint64_t value, unsigned flags) = nullptr;
    result (*event_create)(event_handle*, unsigned flags) = nullptr;
    result (*event_destroy)(event_handle) = nullptr;
    result (*event_elapsed)(float* milliseconds, event_handle start, event_handle end) = nullptr;

    // Memory
    result (*memory_info)(std::size_t* free, std::size_t* total) = nullptr;
    result (*memory_alloc)(device_pointer*, std::size_t bytes) = nullptr;
    result (*memory_free)(device_pointer) = nullptr;
    result (*memory_alloc_managed)(device_pointer*, std::size_t bytes, unsigned flags) = nullptr;
    result (*memory_alloc_async)(device_pointer*, std::size_t bytes, stream_handle) = nullptr;
    result (*memory_free_async)(device_pointer, stream_handle) = nullptr;
    result (*device_default_pool)(pool_handle*, device_number) = nullptr;
    result (*pool_trim)(pool_handle, std::size_t keep) = nullptr;
    result (*pool_get_attribute)(pool_handle, pool_attribute, void* value) = nullptr;
    result (*pool_set_attribute)(pool_handle, pool_attribute, void* value) = nullptr;
    /// @{
    /// Address ranges and the memory mapped there. All may be null.
    result (*allocation_granularity)(std::size_t* bytes, const allocation_properties*, int which) = nullptr;
    result (*address_reserve)(device_pointer*, std::size_t bytes, std::size_t alignment, device_pointer wanted,
                              unsigned long long flags) = nullptr;
    result (*address_free)(device_pointer, std::size_t bytes) = nullptr;
    result (*memory_create)(allocation_handle*, std::size_t bytes, const allocation_properties*,
                            unsigned long long flags) = nullptr;
    result (*memory_release)(allocation_handle) = nullptr;
    result (*memory_map)(device_pointer, std::size_t bytes, std::size_t offset, allocation_handle,
                         unsigned long long flags) = nullptr;
    result (*memory_unmap)(device_pointer, std::size_t bytes) = nullptr;
    result (*memory_set_access)(device_pointer, std::size_t bytes, const access_permission*,
                                std::size_t count) = nullptr;
    /// For mapped memory only; for all other memory it reports no access.
    result (*memory_access)(unsigned long long* flags, const memory_location*, device_pointer) = nullptr;
    /// @}
    result (*host_alloc)(void**, std::size_t bytes, unsigned flags) = nullptr;
    result (*host_free)(void*) = nullptr;
    result (*host_device_pointer)(device_pointer*, void* host, unsigned flags) = nullptr;
    result (*pointer_get_attribute)(void* value, pointer_attribute, device_pointer) = nullptr;
    result (*copy_async)(device_pointer to, device_pointer from, std::size_t bytes, stream_handle) = nullptr;
    result (*copy_to_device_async)(device_pointer to, const void* from, std::size_t bytes, stream_handle) = nullptr;
    result (*copy_to_host_async)(void* to, device_pointer from, std::size_t bytes, stream_handle) = nullptr;
    result (*copy_peer_async)(device_pointer to, context_handle to_context, device_pointer from,
                              context_handle from_context, std::size_t bytes, stream_handle) = nullptr;
    result (*fill8_async)(device_pointer, unsigned char value, std::size_t count, stream_handle) = nullptr;
    result (*fill16_async)(device_pointer, unsigned short value, std::size_t count, stream_handle) = nullptr;
    result (*fill32_async)(device_pointer, unsigned value, std::size_t count, stream_handle) = nullptr;

    // Kernels
    result (*module_load)(module_handle*, const void* image, unsigned options, int* names, void** values) = nullptr;
    result (*module_unload)(module_handle) = nullptr;
    result (*module_function)(function_handle*, module_handle, const char* name) = nullptr;
    result (*function_get_attribute)(int* value, function_attribute, function_handle) = nullptr;
    result (*function_set_attribute)(function_handle, function_attribute, int value) = nullptr;
    result (*launch)(function_handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                     unsigned block_y, unsigned block_z, unsigned shared_bytes, stream_handle, void** arguments,
                     void** extra) = nullptr;
    result (*most_active_blocks)(int* blocks, function_handle, int threads,
                                 std::size_t shared_bytes) = nullptr;  ///< of one multiprocessor
    result (*function_load)(function_handle) = nullptr;                ///< driver 12.4 and later; may be null
    result (*function_parameter)(function_handle, std::size_t index, std::size_t* offset,
                                 std::size_t* bytes) = nullptr;  ///< driver 12.4 and later; may be null
    result (*function_parameter_count)(function_handle,
                                       std::size_t* count) = nullptr;       ///< driver 13.2 and later; may be null
    result (*function_name)(const char** name, function_handle) = nullptr;  ///< driver 12.3 and later; may be null
};

/// The oldest driver that has all mandatory functions: CUDA 11.7.
inline constexpr int smallest_driver_version = 11070;

/// Result of opening the driver.
struct opened_driver {
    const driver_api* api = nullptr;  ///< null if there is no usable driver
    std::string why_not;              ///< then the reason, and what to do
    int version = 0;                  ///< 13000 for CUDA 13.0
    int devices = 0;
};

/// The driver of this machine, libcuda.so.1 unless WEIR_CUDA_DRIVER names another. Opened at the first call and never closed.
/// Any thread; a missing driver or device is no exception.
[[nodiscard]] const opened_driver& machine_driver();

/// Whether the driver was opened by a process that this one was forked from: CUDA does not survive a fork, so that no driver function may
/// be called.
[[nodiscard]] bool is_driver_of_parent() noexcept;

/// Throws weir::device_error, or weir::out_of_memory, with the name of the call, unless `what` is success.
[[noreturn, gnu::cold]] void refuse(const driver_api& api, result what, const char* call);
inline void expect(const driver_api& api, result what, const char* call) {
    if (what != success) [[unlikely]] {
        refuse(api, what, call);
    }
}
/// Whether every later call returns the same: what cuGetErrorName calls ECC_UNCORRECTABLE (214), NVLINK_UNCORRECTABLE (220),
/// CONTAINED (226), ILLEGAL_ADDRESS (700), LAUNCH_TIMEOUT (702), CONTEXT_IS_DESTROYED (709), ASSERT (710), HARDWARE_STACK_ERROR to
/// LAUNCH_FAILED (714 to 719), TENSOR_MEMORY_LEAK (721), MPS_CLIENT_TERMINATED (810), EXTERNAL_DEVICE (911), DEINITIALIZED (4) and
/// UNKNOWN (999).
[[nodiscard]] bool is_sticky(result what) noexcept;
/// What to do then. Appended to the message about the failed call.
inline constexpr const char* what_a_sticky_error_means =
    ". An earlier kernel failed (out-of-bounds access, trap); nothing more can run on any CUDA device in this process: "
    "start it again, with compute-sanitizer to find the kernel";
/// "CUDA_ERROR_INVALID_VALUE (invalid argument)".
[[nodiscard]] std::string describe(const driver_api& api, result what);

}  // namespace weir::backend::cuda
