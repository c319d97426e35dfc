#include "host_compiler.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

extern char** environ;

namespace weir_fake {

temporary_folder::temporary_folder() {
    std::error_code failed;
    const auto parent = std::filesystem::temp_directory_path(failed);
    std::string pattern = (failed ? std::filesystem::path("/tmp") : parent) / "weir-fake-nvrtc-XXXXXX";
    if (::mkdtemp(pattern.data()) != nullptr) {
        path_ = pattern;
    }
}

temporary_folder::~temporary_folder() {
    std::error_code ignored;
    if (!path_.empty()) {
        std::filesystem::remove_all(path_, ignored);
    }
}

bool write_file(const std::string& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    return static_cast<bool>(file.flush());
}

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

namespace {

/// The environment without the variables by which a sanitizer affects programs that a test starts.
std::vector<std::string> plain_environment() {
    std::vector<std::string> all{"LC_ALL=C"};
    for (char** each = environ; *each != nullptr; ++each) {
        const std::string text = *each;
        if (text.rfind("LD_PRELOAD=", 0) != 0 && text.rfind("LC_", 0) != 0) {
            all.push_back(text);
        }
    }
    return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (std::string& each : texts) {
        all.push_back(each.data());
    }
    all.push_back(nullptr);
    return all;
}

/// The exit status, or -1.
int run(std::vector<std::string> words, const std::string& output) {
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    auto environment = plain_environment();
    pid_t child = 0;
    const int failed = ::posix_spawnp(&child, words[0].c_str(), &actions, nullptr, pointers(words).data(),
                                      pointers(environment).data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) {
        return -1;
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return -1;
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

compiled compile_shared(const std::string& source, const std::string& object, const std::vector<std::string>& options) {
    std::vector<std::string> words{WEIR_FAKE_COMPILER,
                                   "-shared",
                                   "-fPIC",
                                   "-O1",
                                   "-g1",
                                   "-w",
                                   "-std=c++17",
                                   "-nostdinc",
                                   "-nostdinc++",
                                   "-fno-exceptions",
                                   "-fno-rtti",
                                   "-Wl,-Bsymbolic",
                                   "-fdiagnostics-color=never",
                                   "-include",
                                   WEIR_FAKE_SHIM};
#ifdef __clang__
    words.emplace_back("-fno-caret-diagnostics");
#else
    words.emplace_back("-fno-diagnostics-show-caret");
    // Static variables of templates would keep the library loaded for ever, and be shared between libraries.
    words.emplace_back("-fno-gnu-unique");
#endif
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"-o", object, "-x", "c++", source});
    const std::string log = object + ".log";
    const int status = run(words, log);
    return {status == 0,
            status == -1 ? "the host compiler " WEIR_FAKE_COMPILER " could not be started\n" : read_file(log)};
}

}  // namespace weir_fake
