// The environment variables that Weir reads, in one table, which `weir info` prints.
#pragma once

#include <array>
#include <string_view>

namespace weir::detail {

/// An environment variable, and the values that it takes.
struct setting_entry {
    const char* name;
    const char* meaning;
};

inline constexpr std::array<setting_entry, 26> settings = {{
    {"WEIR_TRACE", "traces programs to this file: .weirlog, .html or .json"},
    {"WEIR_CHECK", "checks programs for races: 1 or collect, warn, raise"},
    {"WEIR_VERIFY_ACCESS", "1: operations fail if they change what they declare with in"},
    {"WEIR_LOG", "debug: says on the standard error output what goes wrong where no call can tell"},
    {"WEIR_WATCHDOG", "seconds without progress after which a wait says what it waits for; 60 if not set, 0 never"},
    {"WEIR_CPU_THREADS", "threads that run the CPU's streams: 1 to 1024, as many as the machine has if not set"},
    {"WEIR_SIMULATE", "cuda:N: simulated devices stand for cuda:0 to cuda:N-1"},
    {"WEIR_CUDA_DRIVER", "the CUDA driver, instead of libcuda.so.1"},
    {"WEIR_NVTX", "1: labelled operations are ranges in NVIDIA's profilers"},
    {"WEIR_NVTX_LIBRARY", "a library with NVTX's interface"},
    {"WEIR_CUFFT_LIBRARY", "a library with cuFFT's interface"},
    {"WEIR_CUBLAS_LIBRARY", "a library with cuBLAS's interface, for cuDSS"},
    {"WEIR_CUBLASLT_LIBRARY", "a library with cuBLASLt's interface"},
    {"WEIR_CUDSS_LIBRARY", "a library with cuDSS's interface; none: cuSOLVER solves sparse systems"},
    {"WEIR_CUSOLVER_LIBRARY", "a library with cuSOLVER's interface"},
    {"WEIR_NVRTC_LIBRARY", "a library with NVRTC's interface"},
    {"WEIR_LIBRARY_PATH", "folders with libraries of NVIDIA, divided by ':'"},
    {"WEIR_CACHE_DIR", "where compiled kernels are kept"},
    {"WEIR_PREPARE", "0: opening a CUDA device loads no kernels of Weir's; the first use of each does"},
    {"WEIR_CXX", "the C++ compiler for element-wise kernels on the CPU, instead of c++, g++ or clang++"},
    {"WEIR_BLAS_LIBRARY", "a library with the interface of CBLAS"},
    {"WEIR_FFTW_LIBRARY", "a library with FFTW's interface, double precision"},
    {"WEIR_FFTW_LIBRARY_F", "the same, single precision"},
    {"WEIR_PARDISO_LIBRARY", "a library with MKL's PARDISO, which solves sparse systems on the CPU in place of Eigen"},
    {"WEIR_SNDFILE_LIBRARY", "a library with libsndfile's interface"},
    {"CUDA_DEVICE_MAX_CONNECTIONS", "queues of a GPU that streams share: 1 to 32, 8 if not set (the driver reads it)"},
}};

/// A variable of the table: another name does not compile.
class setting {
public:
    consteval setting(const char* name)
        : name_(name) {  // NOLINT(google-explicit-constructor): a name is written as a literal
        for (const setting_entry& each : settings) {
            if (std::string_view(each.name) == name) {
                return;
            }
        }
        throw "a setting that is not in the table of settings";  // no constant expression may throw, so this does not compile
    }

    [[nodiscard]] const char* name() const noexcept { return name_; }
    /// The variable's value; null if it is unset or empty.
    [[nodiscard]] const char* value() const noexcept;
    /// Writes to the standard error output that the value is invalid, with `why`: what is used instead, and which values are valid. Must
    /// be called once in a process.
    void refuse(const char* why) const noexcept;

private:
    const char* name_;
};

}  // namespace weir::detail
