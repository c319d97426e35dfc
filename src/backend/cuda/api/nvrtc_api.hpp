#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weir::backend::cuda {

using nvrtc_result = int;
using nvrtc_program = struct opaque_nvrtc_program*;

inline constexpr nvrtc_result nvrtc_success = 0;
inline constexpr nvrtc_result nvrtc_error_invalid_option = 5;
inline constexpr nvrtc_result nvrtc_error_compilation = 6;

/// The functions of NVIDIA's run-time compiler for CUDA C++ (NVRTC manual, 11.2 and later). Names are the library's,
/// without the prefix "nvrtc". All are set. Tests provide a library of their own (WEIR_NVRTC_LIBRARY).
struct nvrtc_api {
    nvrtc_result (*get_version)(int* major, int* minor) = nullptr;
    const char* (*error_string)(nvrtc_result) = nullptr;
    nvrtc_result (*count_architectures)(int* count) = nullptr;
    nvrtc_result (*get_architectures)(int* all) = nullptr;
    nvrtc_result (*create_program)(nvrtc_program*, const char* source, const char* name, int headers,
                                   const char* const* header_texts, const char* const* header_names) = nullptr;
    nvrtc_result (*destroy_program)(nvrtc_program*) = nullptr;
    nvrtc_result (*add_name_expression)(nvrtc_program, const char* expression) = nullptr;
    nvrtc_result (*compile_program)(nvrtc_program, int options, const char* const* option_texts) = nullptr;
    nvrtc_result (*log_size)(nvrtc_program, std::size_t*) = nullptr;
    nvrtc_result (*get_log)(nvrtc_program, char*) = nullptr;
    nvrtc_result (*cubin_size)(nvrtc_program, std::size_t*) = nullptr;
    nvrtc_result (*get_cubin)(nvrtc_program, char*) = nullptr;
    nvrtc_result (*ptx_size)(nvrtc_program, std::size_t*) = nullptr;
    nvrtc_result (*get_ptx)(nvrtc_program, char*) = nullptr;
    nvrtc_result (*lowered_name)(nvrtc_program, const char* expression, const char** name) = nullptr;

    std::string file;  ///< the file that was opened
    int major = 0;     ///< 13 for 13.0
    int minor = 0;
    std::vector<int> architectures;  ///< that it compiles for, from the oldest: 75, 80, ...
    std::string headers;             ///< the folder of the CUDA headers that belong to it; empty if there is none
};

/// The compiler of this machine: the newest whose code a driver for CUDA `driver_version` (13000 for 13.0) can load.
/// Opened at the first call that succeeds, and never closed. Any thread. Throws missing_library.
[[nodiscard]] const nvrtc_api& nvrtc(int driver_version);

}  // namespace weir::backend::cuda
