// The environment variables that Weir reads: all in one table, which `weir info` prints.
#pragma once

#include <array>
#include <string_view>

namespace weir::backend {

/// A variable of the environment, and what it takes.
struct setting_entry {
    const char* name;
    const char* meaning;
};

inline constexpr std::array<setting_entry, 17> settings = {{
    {"WEIR_TRACE", "traces programs to this file: .weirlog, .html or .json"},
    {"WEIR_CHECK", "checks programs for races: 1 or collect, warn, raise"},
    {"WEIR_LOG", "debug: says on the standard error output what goes wrong where no call can tell"},
    {"WEIR_WATCHDOG", "seconds without progress after which a wait says what it waits for; 60 if not set, 0 never"},
    {"WEIR_CPU_THREADS", "threads that run the CPU's streams: 1 to 1024, as many as the machine has if not set"},
    {"WEIR_SIMULATE", "cuda:N: simulated devices stand for cuda:0 to cuda:N-1"},
    {"WEIR_CUDA_DRIVER", "the CUDA driver, instead of libcuda.so.1"},
    {"WEIR_NVTX", "1: labelled operations are ranges in NVIDIA's profilers"},
    {"WEIR_NVTX_LIBRARY", "a library with NVTX's interface"},
    {"WEIR_CUFFT_LIBRARY", "a library with cuFFT's interface"},
    {"WEIR_NVRTC_LIBRARY", "a library with NVRTC's interface"},
    {"WEIR_LIBRARY_PATH", "folders with libraries of NVIDIA, divided by ':'"},
    {"WEIR_CACHE_DIR", "where compiled kernels are kept"},
    {"WEIR_FFTW_LIBRARY", "a library with FFTW's interface, double precision"},
    {"WEIR_FFTW_LIBRARY_F", "the same, single precision"},
    {"WEIR_SNDFILE_LIBRARY", "a library with libsndfile's interface"},
    {"CUDA_DEVICE_MAX_CONNECTIONS", "queues of a GPU that streams share: 1 to 32, 8 if not set (the driver reads it)"},
}};

/// One of the table: no other name compiles.
class setting {
public:
    consteval setting(const char* name)
        : name_(name) {  // NOLINT(google-explicit-constructor): a name is written as a text
        for (const setting_entry& each : settings) {
            if (std::string_view(each.name) == name) {
                return;
            }
        }
        throw "a setting that is not in the table of settings";  // which no constant expression does
    }

    [[nodiscard]] const char* name() const noexcept { return name_; }
    /// What the environment says; null if that is nothing.
    [[nodiscard]] const char* value() const noexcept;
    /// Says on the standard error output that the value cannot be taken: what comes instead, and what can be said. To be
    /// called once in a process.
    void refuse(const char* why) const noexcept;

private:
    const char* name_;
};

}  // namespace weir::backend
