#include "array/elements/host_compiler.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "backend/kernel_cache.hpp"
#include "base/setting.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/error.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): not every system's headers have it

namespace weir::elements {

namespace {

namespace fs = std::filesystem;

/// Results are rounded as on CUDA devices here and as in NumPy: no multiplication is fused with an addition. Mathematical functions
/// report errors only through their results.
constexpr const char* options =
    "-std=c++17 -O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math -shared -fPIC "
    "-fvisibility=hidden -w -fdiagnostics-color=never";

std::vector<std::string> words_of(const std::string& text) {
    std::istringstream from(text);
    return {std::istream_iterator<std::string>(from), {}};
}

std::string text_in(const fs::path& file) {
    std::ifstream from(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(from), {}};
}

/// A new folder that is removed with its contents.
class scratch_place {
public:
    scratch_place() {
        std::error_code failed;
        const fs::path parent = fs::temp_directory_path(failed);
        std::string pattern = (failed ? fs::path("/tmp") : parent) / "weir-elements-XXXXXX";
        if (::mkdtemp(pattern.data()) == nullptr) {
            throw device_error("no temporary folder can be made in " + fs::path(pattern).parent_path().string() +
                               " to compile a kernel for the CPU (" + std::strerror(errno) +
                               "): name another place in TMPDIR");
        }
        path_ = pattern;
    }
    ~scratch_place() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    scratch_place(const scratch_place&) = delete;
    scratch_place& operator=(const scratch_place&) = delete;

    [[nodiscard]] fs::path operator/(const char* name) const { return path_ / name; }

    void write(const char* name, const std::string& text) const {
        std::ofstream to(path_ / name, std::ios::binary);
        to << text;
        if (!to.flush()) {
            throw device_error("the temporary file " + (path_ / name).string() +
                               " cannot be written: make room there, or name another place in TMPDIR");
        }
    }

private:
    fs::path path_;
};

/// Runs a program with its output in a file. Returns the exit status; empty if it cannot be started. No shell is involved.
std::optional<int> exit_status_of(std::vector<std::string> words, const fs::path& output) {
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& one : words) {
        arguments.push_back(one.data());
    }
    arguments.push_back(nullptr);
    // Messages in English, in a form that the parser knows.
    std::string language = "LC_ALL=C";
    std::vector<char*> environment{language.data()};
    for (char** each = environ; *each != nullptr; ++each) {
        if (!std::string_view(*each).starts_with("LC_ALL=")) {
            environment.push_back(*each);
        }
    }
    environment.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    if (::posix_spawn_file_actions_init(&actions) != 0) {
        return std::nullopt;
    }
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    pid_t child = 0;
    const int failed = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) {
        return std::nullopt;
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return std::nullopt;  // the program has disabled notification of child exits
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Identifies processors that differ in what -march=native means.
std::string processor() {
    std::ifstream from("/proc/cpuinfo");
    std::string found;
    for (std::string line; std::getline(from, line) && !line.empty();) {
        for (const char* const name : {"vendor_id", "model name", "cpu family", "model\t", "stepping", "flags",
                                       "Features", "CPU implementer", "CPU part"}) {
            if (line.starts_with(name)) {
                found += line + "\n";
            }
        }
    }
    return found;
}

/// The first line that `command --version` prints; empty if there is no such program.
std::string version_of(const std::string& command) {
    std::vector<std::string> words = words_of(command);
    if (words.empty()) {
        return {};
    }
    words.emplace_back("--version");
    const scratch_place scratch;
    if (exit_status_of(words, scratch / "version") != 0) {
        return {};
    }
    return text_in(scratch / "version");
}

/// The compilers that were asked for their versions, by command. Never destroyed.
class known_compilers {
public:
    static known_compilers& instance() {
        static auto* const one = new known_compilers;
        return *one;
    }
    /// Null if there is no such program.
    const host_compiler* find(const std::string& command) {
        {
            const std::lock_guard lock(mutex_);
            if (const auto found = all_.find(command); found != all_.end()) {
                return &found->second;
            }
        }
        const std::string version = version_of(command);
        if (version.empty()) {
            return nullptr;  // it may be installed later
        }
        const std::lock_guard lock(mutex_);
        return &all_.try_emplace(command, command, version).first->second;
    }

private:
    detail::mutex mutex_;  ///< guards all_; a leaf in the lock order
    std::map<std::string, host_compiler> all_;
};

/// The function of the shared library `image`. The library is never unloaded.
host_loop opened(const std::string& image) {
    const scratch_place scratch;
    scratch.write("kernel.so", image);
    const fs::path file = scratch / "kernel.so";
    void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const function = library != nullptr ? ::dlsym(library, host_function) : nullptr;
    if (function == nullptr) {
        const char* const reason = ::dlerror();
        throw device_error(std::string("a kernel that was compiled for the CPU cannot be loaded (") +
                           (reason != nullptr ? reason : "unknown error") +
                           "): if programs may not be run from there, name another place in TMPDIR");
    }
    return reinterpret_cast<host_loop>(function);
}

/// Loops by their source and compiler. Never destroyed.
class known_loops {
public:
    static known_loops& instance() {
        static auto* const one = new known_loops;
        return *one;
    }
    host_loop find(const std::string& wanted) const {
        const std::lock_guard lock(mutex_);
        const auto found = all_.find(wanted);
        return found != all_.end() ? found->second : nullptr;
    }
    host_loop keep(const std::string& wanted, host_loop made) {
        const std::lock_guard lock(mutex_);
        return all_.try_emplace(wanted, made).first->second;
    }

private:
    mutable detail::mutex mutex_;  ///< guards all_; a leaf in the lock order. Not held while a compiler runs
    std::map<std::string, host_loop> all_;
};

void keep_on_disk(const backend::kernel_cache& cache, const std::string& wanted, const std::string& image) {
    constexpr detail::setting chosen("WEIR_CACHE_DIR");
    if (!cache.keep(wanted, {image, host_function}) && chosen.value() != nullptr) {
        static std::atomic_flag is_reported;
        if (!is_reported.test_and_set(std::memory_order_relaxed)) {
            chosen.refuse("compiled kernels cannot be kept there; name a folder in which files can be made");
        }
    }
}

}  // namespace

host_compiler::host_compiler(std::string command, const std::string& version)
    : command_(std::move(command)),
      identity_("weir elements " WEIR_VERSION "\n" + command_ + "\n" + version + "\n" + options + "\n" + processor()) {}

const host_compiler& host_compiler::find() {
    constexpr detail::setting chosen("WEIR_CXX");
    known_compilers& all = known_compilers::instance();
    if (const char* const command = chosen.value(); command != nullptr) {
        if (const host_compiler* const found = all.find(command)) {
            return *found;
        }
        throw missing_library(
            "the C++ compiler that WEIR_CXX names, \"" + std::string(command) +
            "\", cannot be run: element-wise kernels are compiled for the CPU when they are first used; "
            "install the package g++ (Debian, Ubuntu), or name another compiler in WEIR_CXX");
    }
    for (const char* const command : {"c++", "g++", "clang++"}) {
        if (const host_compiler* const found = all.find(command)) {
            return *found;
        }
    }
    throw missing_library(
        "there is no C++ compiler (c++, g++, clang++): element-wise kernels are compiled for the CPU when they are "
        "first "
        "used; install the package g++ (Debian, Ubuntu), or name a compiler in WEIR_CXX");
}

std::string host_compiler::compile(const std::string& source) const {
    const scratch_place scratch;
    scratch.write("kernel.cpp", source);
    std::vector<std::string> words = words_of(command_);
    const std::vector<std::string> more = words_of(options);
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"-o", (scratch / "kernel.so").string(), (scratch / "kernel.cpp").string()});
    const std::optional<int> status = exit_status_of(words, scratch / "log");
    if (!status) {
        throw device_error("the C++ compiler \"" + command_ +
                           "\" cannot be run, or its end cannot be seen, since the program ignores SIGCHLD");
    }
    if (*status != 0) {
        throw compile_failure{command_, text_in(scratch / "log")};
    }
    return text_in(scratch / "kernel.so");
}

host_loop load_loop(const std::string& source) {
    const host_compiler& compiler = host_compiler::find();
    const std::string wanted = compiler.identity() + source;
    if (const host_loop found = known_loops::instance().find(wanted)) {
        return found;
    }
    const backend::kernel_cache cache(backend::kernel_cache_folder());
    std::optional<backend::compiled_program> kept = cache.find(wanted);
    if (kept) {
        return known_loops::instance().keep(wanted, opened(kept->image));
    }
    const std::string image = compiler.compile(source);
    keep_on_disk(cache, wanted, image);
    return known_loops::instance().keep(wanted, opened(image));
}

}  // namespace weir::elements
