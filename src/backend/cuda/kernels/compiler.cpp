#include "backend/cuda/kernels/compiler.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "backend/cuda/api/nvrtc_api.hpp"
#include "backend/cuda/device/context.hpp"
#include "backend/cuda/kernels/included_files.hpp"
#include "backend/kernel_cache.hpp"
#include "base/setting.hpp"
#include "weir/error.hpp"

namespace weir::backend::cuda {

namespace {

void expect_done(const nvrtc_api& api, nvrtc_result what, const char* call) {
    if (what != nvrtc_success) {
        const char* const text = api.error_string(what);
        throw device_error(std::string(call) + " failed: " + (text != nullptr ? text : std::to_string(what).c_str()));
    }
}

/// Owns a program of NVRTC.
class nvrtc_owner {
public:
    nvrtc_owner(const nvrtc_api& api, const std::string& source, const std::string& file) : api_(&api) {
        expect_done(api, api.create_program(&handle_, source.c_str(), file.c_str(), 0, nullptr, nullptr),
                    "nvrtcCreateProgram");
    }
    ~nvrtc_owner() { api_->destroy_program(&handle_); }
    nvrtc_owner(const nvrtc_owner&) = delete;
    nvrtc_owner& operator=(const nvrtc_owner&) = delete;

    [[nodiscard]] nvrtc_program get() const noexcept { return handle_; }

    /// Text or bytes of the program. The library has one function that returns the size and one that copies.
    [[nodiscard]] std::string text(nvrtc_result (*size)(nvrtc_program, std::size_t*),
                                   nvrtc_result (*copy)(nvrtc_program, char*)) const {
        std::size_t bytes = 0;
        if (size(handle_, &bytes) != nvrtc_success || bytes == 0) {
            return {};
        }
        std::string all(bytes, '\0');
        return copy(handle_, all.data()) == nvrtc_success ? all : std::string();
    }

private:
    const nvrtc_api* api_;
    nvrtc_program handle_ = nullptr;
};

/// "-arch=sm_90" where the compiler knows the architecture, else an option for the newest one before it, whose PTX the driver compiles
/// ("-arch=compute_80").
std::string architecture_option(const nvrtc_api& api, const std::string& architecture) {
    const int wanted = std::stoi(architecture);
    int best = 0;
    for (const int each : api.architectures) {
        if (each <= wanted) {
            best = std::max(best, each);
        }
    }
    if (best == 0) {
        throw device_error("this NVRTC (" + api.file + ") does not compile for the architecture sm_" + architecture +
                           " or an older one: install one that does");
    }
    return (best == wanted ? "-arch=sm_" : "-arch=compute_") + std::to_string(best);
}

bool names_architecture(const std::string& option) {
    return option.starts_with("-arch") || option.starts_with("--gpu-architecture");
}

std::vector<std::string> all_options(const nvrtc_api& api, const context& target, const compile_request& what) {
    std::vector<std::string> all;
    if (std::none_of(what.options.begin(), what.options.end(), names_architecture)) {
        all.push_back(architecture_option(api, target.architecture()));
    }
    all.insert(all.end(), what.options.begin(), what.options.end());
    if (!api.headers.empty()) {
        all.push_back("-I" + api.headers);
    }
    return all;
}

/// The name of the source in the compiler's messages.
std::string file_name(const std::string& kernel) {
    std::string file = kernel.substr(0, kernel.find_first_of("<( "));
    if (const std::size_t last = file.rfind(':'); last != std::string::npos) {
        file.erase(0, last + 1);
    }
    return (file.empty() ? std::string("kernel") : file) + ".cu";
}

/// The first line of the log that is an error, else the first line.
std::string first_error(const std::string& log) {
    for (std::size_t start = 0; start < log.size();) {
        const std::size_t end = std::min(log.find('\n', start), log.size());
        std::string line = log.substr(start, end - start);
        if (line.find("error") != std::string::npos) {
            return line;
        }
        start = end + 1;
    }
    return log.substr(0, log.find('\n'));
}

void check_text(const compile_request& what) {
    for (const std::string& option : what.options) {
        if (option.find_first_of(std::string_view("\n\r\0", 3)) != std::string::npos) {
            throw argument_error("an option for the kernel " + what.name +
                                 " has a line break in it: give each option as a text of its own");
        }
    }
    if (what.source.find('\0') != std::string::npos || what.name.find('\0') != std::string::npos) {
        throw argument_error("the source and the name of a kernel are text without zero bytes");
    }
    if (what.name.empty()) {
        throw argument_error("say which kernel of the source is meant: its name is empty");
    }
}

/// Whether the compiled code may depend on files, which the cache does not know. Headers that come with the compiler are
/// covered by its version and by headers_stamp.
bool depends_on_files(const compile_request& what) {
    for (const std::string& option : what.options) {
        for (const char* const start : {"-I", "--include", "-include", "--pre-include", "--options-file", "-optf",
                                        "--pch", "-pch", "--use-pch", "-use-pch", "--create-pch", "-create-pch"}) {
            if (option.starts_with(start)) {
                return true;
            }
        }
    }
    return may_include_files(what.source);
}

/// Distinguishes versions of the headers beside the compiler, which may be replaced without it.
std::string headers_stamp(const std::string& folder) {
    const std::filesystem::path one = std::filesystem::path(folder) / "cuda_runtime.h";
    std::error_code failed;
    const auto bytes = std::filesystem::file_size(one, failed);
    const auto written = failed ? std::filesystem::file_time_type() : std::filesystem::last_write_time(one, failed);
    return failed ? std::string("unknown")
                  : std::to_string(bytes) + " " + std::to_string(written.time_since_epoch().count());
}

/// Everything that the result depends on.
std::string cache_key(const nvrtc_api& api, int driver_version, const std::vector<std::string>& options,
                      const compile_request& what) {
    std::string key = std::string("weir ") + WEIR_VERSION + "\nNVRTC " + std::to_string(api.major) + "." +
                      std::to_string(api.minor) + " " + std::filesystem::path(api.file).filename().string() +
                      "\ndriver " + std::to_string(driver_version) + "\n";
    if (!api.headers.empty()) {
        key += "headers " + headers_stamp(api.headers) + "\n";
    }
    for (const std::string& option : options) {
        key += "option " + option + "\n";  // no line breaks in it
    }
    return key + "kernel " + std::to_string(what.name.size()) + " " + what.name + "\n" + what.source;
}

compiled_program run(const nvrtc_api& api, const std::vector<std::string>& options, const compile_request& what) {
    std::vector<const char*> texts;
    texts.reserve(options.size());
    for (const std::string& option : options) {
        texts.push_back(option.c_str());
    }
    const nvrtc_owner program(api, what.source, file_name(what.name));
    const bool expression = what.source.find("extern \"C\"") == std::string::npos;
    if (expression) {
        expect_done(api, api.add_name_expression(program.get(), what.name.c_str()), "nvrtcAddNameExpression");
    }
    const nvrtc_result done = api.compile_program(program.get(), static_cast<int>(texts.size()), texts.data());
    if (done != nvrtc_success) {
        std::string log = program.text(api.log_size, api.get_log);
        log.erase(std::find(log.begin(), log.end(), '\0'), log.end());
        if (done != nvrtc_error_compilation && done != nvrtc_error_invalid_option) {
            expect_done(api, done, "nvrtcCompileProgram");
        }
        const char* const reason = api.error_string(done);
        const std::string first =
            log.empty() ? std::string(reason != nullptr ? reason : "unknown error") : first_error(log);
        throw argument_error("the kernel " + what.name +
                             " does not compile: " + (log.starts_with(first) ? log : first + "\n" + log));
    }
    compiled_program made;
    made.symbol = what.name;
    if (expression) {
        const char* symbol = nullptr;
        expect_done(api, api.lowered_name(program.get(), what.name.c_str(), &symbol), "nvrtcGetLoweredName");
        made.symbol = symbol;
    }
    made.image = program.text(api.cubin_size, api.get_cubin);
    if (made.image.empty()) {
        made.image = program.text(api.ptx_size, api.get_ptx);
    }
    if (made.image.empty()) {
        throw device_error("NVRTC (" + api.file + ") compiled the kernel " + what.name + " to nothing");
    }
    return made;
}

}  // namespace

compiled_program compile(const context& target, const compile_request& what) {
    check_text(what);
    int driver_version = 0;
    target.api().driver_version(&driver_version);
    const nvrtc_api& api = nvrtc(driver_version);
    const std::vector<std::string> options = all_options(api, target, what);
    if (depends_on_files(what)) {
        return run(api, options, what);
    }
    const kernel_cache cache(kernel_cache_folder());
    const std::string key = cache_key(api, driver_version, options, what);
    if (std::optional<compiled_program> found = cache.find(key)) {
        return *std::move(found);
    }
    compiled_program made = run(api, options, what);
    constexpr detail::setting chosen("WEIR_CACHE_DIR");
    if (!cache.keep(key, made) && chosen.value() != nullptr) {
        static std::atomic_flag is_reported;
        if (!is_reported.test_and_set(std::memory_order_relaxed)) {
            chosen.refuse("compiled kernels cannot be kept there; name a folder in which files can be made");
        }
    }
    return made;
}

}  // namespace weir::backend::cuda
