#pragma once

#include <cstddef>
#include <string>

namespace weir::calls {

using cufft_handle = int;
using cufft_status = int;

// Values of cuFFT's interface (cuFFT documentation 13.0, "cuFFT API Reference").
inline constexpr cufft_status cufft_success = 0;
inline constexpr cufft_status cufft_alloc_failed = 2;
inline constexpr int cufft_forward = -1;
inline constexpr int cufft_inverse = +1;

/// The type of transform of a plan.
enum class cufft_type : int {
    r2c = 0x2a,
    c2r = 0x2c,
    c2c = 0x29,
    d2z = 0x6a,
    z2d = 0x6c,
    z2z = 0x69,
};

/// The functions of NVIDIA's FFT library, versions 10 to 12. Opened at run time and declared here anew, so that
/// Weir is built without a toolkit. Memory and streams are the driver's.
struct cufft_functions {
    cufft_status (*create)(cufft_handle*) = nullptr;
    cufft_status (*destroy)(cufft_handle) = nullptr;
    cufft_status (*set_auto_allocation)(cufft_handle, int on) = nullptr;
    cufft_status (*make_plan_many)(cufft_handle, int rank, long long* n, long long* in_embed, long long in_stride,
                                   long long in_distance, long long* out_embed, long long out_stride,
                                   long long out_distance, cufft_type, long long batch,
                                   std::size_t* workspace) = nullptr;
    cufft_status (*set_stream)(cufft_handle, void* stream) = nullptr;
    cufft_status (*set_work_area)(cufft_handle, void* memory) = nullptr;
    cufft_status (*execute_c2c)(cufft_handle, void* in, void* out, int direction) = nullptr;
    cufft_status (*execute_z2z)(cufft_handle, void* in, void* out, int direction) = nullptr;
    cufft_status (*execute_r2c)(cufft_handle, void* in, void* out) = nullptr;
    cufft_status (*execute_d2z)(cufft_handle, void* in, void* out) = nullptr;
    cufft_status (*execute_c2r)(cufft_handle, void* in, void* out) = nullptr;
    cufft_status (*execute_z2d)(cufft_handle, void* in, void* out) = nullptr;

    std::string file;  ///< the file that was opened
    int version = 0;   ///< 11000 for 11.0; 0 if the library does not report it
};

/// The library of this machine: the newest that a driver for CUDA `driver_version` (13000 for 13.0) can run, unless
/// WEIR_CUFFT_LIBRARY names another. Opened at the first call that succeeds, and never closed. Any thread. Throws
/// missing_library; each later call searches again.
[[nodiscard]] const cufft_functions& cufft(int driver_version);

/// Throws unless `status` is success: out_of_memory if the library could not allocate memory, else device_error. The message has
/// the call, the status, and how to correct the problem.
void expect_cufft(cufft_status status, const char* call);

}  // namespace weir::calls
