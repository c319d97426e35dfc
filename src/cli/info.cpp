#include "cli/info.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include "backend/cuda/driver_api.hpp"
#include "backend/setting.hpp"
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

bool is_known(std::string_view name) {
    return std::any_of(backend::settings.begin(), backend::settings.end(),
                       [&](const backend::setting_entry& each) { return each.name == name; });
}

/// All that Weir reads, and what looks as if it were meant for it.
void print_environment() {
    for (const auto& [name, meaning] : backend::settings) {
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
    print_library("sound files (weir demo)", [] {
        const demo::sound_library& library = demo::sounds();
        return library.file + " (" + library.version_text() + ")";
    });
    fmt::print("\nenvironment\n");
    print_environment();
}

}  // namespace weir::cli
