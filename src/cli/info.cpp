#include "cli/info.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "backend/cuda/driver_api.hpp"
#include "backend/cuda/nvrtc_api.hpp"
#include "calls/fftw_library.hpp"
#include "cli/demo/sound_library.hpp"
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

std::string nvrtc_found() {
    const int driver = backend::cuda::machine_driver().version;
    const backend::cuda::nvrtc_api& library = backend::cuda::nvrtc(driver != 0 ? driver : 13000);
    return fmt::format("{} ({}.{})", library.file, library.major, library.minor);
}

constexpr std::array<std::pair<const char*, const char*>, 10> variables = {{
    {"WEIR_TRACE", "traces programs to this file: .weirlog, .html or .json"},
    {"WEIR_CHECK", "checks programs for races: 1 or collect, warn, raise"},
    {"WEIR_CPU_THREADS", "threads that run the CPU's streams"},
    {"WEIR_CUDA_DRIVER", "the CUDA driver, instead of libcuda.so.1"},
    {"WEIR_NVRTC_LIBRARY", "a library with NVRTC's interface"},
    {"WEIR_LIBRARY_PATH", "folders in which to look for NVIDIA's libraries first"},
    {"WEIR_CACHE_DIR", "the folder of compiled kernels"},
    {"WEIR_FFTW_LIBRARY", "a library with FFTW's interface, double precision"},
    {"WEIR_FFTW_LIBRARY_F", "the same, single precision"},
    {"WEIR_SNDFILE_LIBRARY", "a library with libsndfile's interface"},
}};

}  // namespace

void print_info() {
    fmt::print("weir {}\n\ndevices\n", WEIR_VERSION);
    for (const device& each : devices()) {
        fmt::print("  {:<26}{} of memory, {} threads of the machine\n", each.name(),
                   size_in_words(memory::stats(each).limit), std::thread::hardware_concurrency());
    }
    fmt::print("\nlibraries, opened when they are needed\n");
    print_library("FFT, double precision", fftw_found<double>);
    print_library("FFT, single precision", fftw_found<float>);
    print_library("CUDA kernels (NVRTC)", nvrtc_found);
    print_library("sound files (weir demo)", [] {
        const demo::sound_library& library = demo::sounds();
        return library.file + " (" + library.version_text() + ")";
    });
    fmt::print("\nenvironment\n");
    for (const auto& [name, meaning] : variables) {
        const char* const value = std::getenv(name);
        fmt::print("  {:<26}{:<16}{}\n", name, value != nullptr ? value : "not set", meaning);
    }
}

}  // namespace weir::cli
