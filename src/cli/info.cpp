#include "cli/info.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include "backend/cuda/api/driver_api.hpp"
#include "base/setting.hpp"
#include "calls/fft/cufft_library.hpp"
#include "calls/fft/fftw_library.hpp"
#include "calls/matmul/blas_library.hpp"
#include "calls/matmul/cublaslt_library.hpp"
#include "calls/sparse/cudss_library.hpp"
#include "calls/sparse/cusolver_library.hpp"
#include "calls/sparse/factorization.hpp"
#include "cli/demo/sound_library.hpp"
#include "cli/info_cuda.hpp"
#include "weir/weir.hpp"

namespace weir::cli {

namespace {

/// Prints "what: how it was found", or what to install.
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

std::string blas_found() {
    const calls::blas_functions& library = calls::blas();
    return library.file + (library.version.empty() ? "" : " (" + library.version + ")");
}

std::string cublaslt_found() {
    const int driver = backend::cuda::machine_driver().version;
    const calls::cublaslt_functions& library = calls::cublaslt(driver != 0 ? driver : 13000);
    return fmt::format("{} ({}.{})", library.file, library.version / 10000, library.version % 10000 / 100);
}

std::string eigen_found() {
    const std::string version = calls::eigen_version();
    return version.empty() ? "not compiled in" : "Eigen " + version + ", compiled in";
}

std::string cudss_found() {
    const calls::cudss_functions& library = calls::cudss();
    return fmt::format("{} ({}.{})", library.file, library.major, library.minor);
}

std::string cusolver_found() {
    const int driver = backend::cuda::machine_driver().version;
    return calls::cusolver(driver != 0 ? driver : 13000).file;
}

bool is_known(std::string_view name) {
    return std::any_of(detail::settings.begin(), detail::settings.end(),
                       [&](const detail::setting_entry& each) { return each.name == name; });
}

/// Prints all environment variables that Weir reads, and others with similar names.
void print_environment() {
    for (const auto& [name, meaning] : detail::settings) {
        const char* const value = std::getenv(name);
        fmt::print("  {:<30}{:<15} {}\n", name, value != nullptr ? value : "not set", meaning);
    }
    for (char** each = environ; *each != nullptr; ++each) {
        const std::string_view entry = *each;
        const std::string_view name = entry.substr(0, entry.find('='));
        if (name.starts_with("WEIR_") && !is_known(name)) {
            fmt::print("  {:<30}{:<15} Weir has no such variable\n", name,
                       entry.substr(std::min(entry.size(), name.size() + 1)));
        }
    }
}

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
    print_library("products of matrices", blas_found);
    print_library("products on CUDA", cublaslt_found);
    print_library("sparse systems", eigen_found);
    print_library("sparse systems on CUDA", cudss_found);
    print_library("the same without cuDSS", cusolver_found);
    print_library("sound files (weir demo)", [] {
        const demo::sound_library& library = demo::sounds();
        return library.file + " (" + library.version_text() + ")";
    });
    fmt::print("\nenvironment\n");
    print_environment();
}

}  // namespace weir::cli
