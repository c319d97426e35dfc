// The folder fake_cuda/ holds three libraries for tests: a CUDA driver whose devices are made of threads, an NVRTC that
// compiles with the host's compiler, and a cuFFT that transforms by the definition. They are opened by name, as the real ones are, and include nothing of Weir.
//
// This file has the driver's types and values that the fake needs (CUDA Driver API reference manual, 13.0).
#pragma once

#include <cstddef>
#include <cstdint>

#define WEIR_FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace weir_fake {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = std::uint64_t;

struct context;
struct stream_slot;
struct event_slot;
struct module_slot;
struct function_slot;
struct pool;
struct capture;
using CUcontext = context*;
using CUstream = stream_slot*;
using CUevent = event_slot*;
using CUmodule = module_slot*;
using CUfunction = function_slot*;
using CUmemoryPool = pool*;

inline constexpr CUresult success = 0;
inline constexpr CUresult invalid_value = 1;
inline constexpr CUresult out_of_memory = 2;
inline constexpr CUresult not_initialized = 3;
inline constexpr CUresult no_device = 100;
inline constexpr CUresult invalid_device = 101;
inline constexpr CUresult invalid_image = 200;
inline constexpr CUresult invalid_context = 201;
inline constexpr CUresult no_binary_for_gpu = 209;
inline constexpr CUresult peer_access_unsupported = 217;
inline constexpr CUresult invalid_ptx = 218;
inline constexpr CUresult invalid_handle = 400;
inline constexpr CUresult not_found = 500;
inline constexpr CUresult not_ready = 600;
inline constexpr CUresult launch_timeout = 702;
inline constexpr CUresult peer_access_already_enabled = 704;
inline constexpr CUresult assertion_failed = 710;
inline constexpr CUresult launch_failed = 719;
inline constexpr CUresult cooperative_launch_too_large = 720;
inline constexpr CUresult not_supported = 801;
inline constexpr CUresult invalid_cluster_size = 912;
inline constexpr CUresult capture_unsupported = 900;
inline constexpr CUresult capture_invalidated = 901;
inline constexpr CUresult capture_merge = 902;
inline constexpr CUresult capture_unmatched = 903;
inline constexpr CUresult capture_isolation = 905;
inline constexpr CUresult capture_implicit = 906;
inline constexpr CUresult captured_event = 907;
inline constexpr CUresult capture_wrong_thread = 908;
inline constexpr CUresult unknown = 999;

inline constexpr unsigned stream_non_blocking = 1;
inline constexpr unsigned event_disable_timing = 2;

}  // namespace weir_fake
