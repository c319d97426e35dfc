#include "cli/info.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "backend/cuda/driver_api.hpp"
#include "calls/cufft_library.hpp"
#include "calls/fftw_library.hpp"
#include "cli/demo/sound_library.hpp"
#include "cli/info_cuda.hpp"
#include "weir/weir.hpp"

namespace weir::cli {

namespace {

/// "what: how it was found", or what to install.
template <class Find>
void print_library(const char* what, Find&& find) {
    std::string found;
    try {
        found = find();
    } catch (const missing_library& missing) {
        found = std::string("missing: ") + missing.what();
    }
    fmt::print("  {:<26}{}\n", what, found);
}

template <class T>
std::string fftw_found() {
    const calls::fftw_functions<T>& library = calls::fftw<T>();
    return library.file + (library.version.empty() ? "" : " (" + library.version + ")");
}

std::string size_in_words(std::size_t bytes) {
    return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1024.0 * 1024 * 1024));
}

std::string cufft_found() {
    const int driver = backend::cuda::machine_driver().version;
    const calls::cufft_functions& library = calls::cufft(driver != 0 ? driver : 13000);
    return fmt::format("{} ({}.{})", library.file, library.version / 1000, library.version % 1000 / 100);
}

constexpr std::array<std::pair<const char*, const char*>, 15> variables = {{
    {"WEIR_TRACE", "traces programs to this file: .weirlog, .html or .json"},
    {"WEIR_CHECK", "checks programs for races: 1 or collect, warn, raise"},
    {"WEIR_CPU_THREADS", "threads that run the CPU's streams"},
    {"WEIR_SIMULATE", "cuda:N: simulated devices stand for cuda:0 to cuda:N-1"},
    {"WEIR_CUDA_DRIVER", "the CUDA driver, instead of libcuda.so.1"},
    {"WEIR_NVTX", "1: labelled operations are ranges in NVIDIA's profilers"},
    {"WEIR_NVTX_LIBRARY", "a library with NVTX's interface"},
    {"WEIR_CUFFT_LIBRARY", "a library with cuFFT's interface"},
    {"WEIR_NVRTC_LIBRARY", "a library with NVRTC's interface"},
    {"WEIR_LIBRARY_PATH", "folders with libraries of NVIDIA, divided by ':'"},
    {"WEIR_CACHE_DIR", "where compiled kernels are kept"},
    {"CUDA_DEVICE_MAX_CONNECTIONS", "queues of a GPU that streams share: 1 to 32, 8 if not set"},
    {"WEIR_FFTW_LIBRARY", "a library with FFTW's interface, double precision"},
    {"WEIR_FFTW_LIBRARY_F", "the same, single precision"},
    {"WEIR_SNDFILE_LIBRARY", "a library with libsndfile's interface"},
}};

}  // namespace

void print_info() {
    fmt::print("weir {}\n\ndevices\n", WEIR_VERSION);
    for (const device& each : {cpu(), cpu_inline()}) {
        fmt::print("  {:<26}{} of memory, {} threads of the machine\n", each.name(),
                   size_in_words(memory::stats(each).limit), std::thread::hardware_concurrency());
    }
    print_cuda();
    fmt::print("\nlibraries, opened when they are needed\n");
    print_library("FFT, double precision", fftw_found<double>);
    print_library("FFT, single precision", fftw_found<float>);
    print_library("FFT on CUDA (cuFFT)", cufft_found);
    print_library("sound files (weir demo)", [] {
        const demo::sound_library& library = demo::sounds();
        return library.file + " (" + library.version_text() + ")";
    });
    fmt::print("\nenvironment\n");
    for (const auto& [name, meaning] : variables) {
        const char* const value = std::getenv(name);
        fmt::print("  {:<30}{:<15} {}\n", name, value != nullptr ? value : "not set", meaning);
    }
}

}  // namespace weir::cli
