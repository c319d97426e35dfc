#include "backend/nvidia_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "weir/error.hpp"

namespace weir::backend {

namespace {

/// Empty if it is not set.
std::string environment(const char* variable) {
    const char* const value = std::getenv(variable);
    return value != nullptr ? value : "";
}

bool exists(const std::string& file) {
    std::error_code ignored;
    return std::filesystem::exists(file, ignored);
}

}  // namespace

bool nvidia_library::open(const std::string& file) {
    handle_ = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    file_ = file;
    return handle_ != nullptr;
}

bool nvidia_library::search(const name& which) {
    const auto try_folder = [&](const std::string& folder, const char* file) {
        const std::string path = folder + "/" + file;
        return exists(path) && open(path);
    };
    constexpr detail::setting path("WEIR_LIBRARY_PATH");
    const char* const said = path.value();
    const std::string listed = said != nullptr ? said : "";
    for (std::string_view rest = listed; !rest.empty();) {
        const std::string entry(rest.substr(0, rest.find(':')));
        rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
        if (entry.empty()) {
            continue;
        }
        if (!exists(entry)) {
            static std::atomic_flag is_told;
            if (!is_told.test_and_set(std::memory_order_relaxed)) {
                path.refuse(("there is no folder " + entry + "; name folders, divided by ':'").c_str());
            }
            continue;
        }
        for (const char* const file : which.files) {
            if (try_folder(entry, file)) {
                return true;
            }
            for (const char* const package : which.packages) {
                if (try_folder(entry + "/nvidia/" + package + "/lib", file)) {
                    return true;
                }
            }
        }
    }
    for (const char* const file : which.files) {
        if (open(file)) {
            return true;
        }
    }
    for (const std::string& toolkit :
         {environment("CUDA_HOME"), environment("CUDA_PATH"), std::string("/usr/local/cuda")}) {
        for (const char* const file : which.files) {
            if (!toolkit.empty() && try_folder(toolkit + "/lib64", file)) {
                return true;
            }
        }
    }
    return false;
}

nvidia_library::nvidia_library(const name& which) : title_(which.title) {
    if (const char* const other = which.variable.value(); other != nullptr) {
        if (!open(other)) {
            const char* const text = ::dlerror();
            throw missing_library(std::string("cannot open ") + other + ", which " + which.variable.name() + " names" +
                                  (text != nullptr ? ": " + std::string(text) : ""));
        }
        return;
    }
    if (search(which)) {
        return;
    }
    throw missing_library(std::string("cannot find ") + which.title + " (" + which.files.front() + "): install " +
                          which.install + ", or name the file in " + which.variable.name() +
                          ", or a folder that has it in WEIR_LIBRARY_PATH");
}

std::string nvidia_library::folder() const {
    const link_map* found = nullptr;
    if (::dlinfo(handle_, RTLD_DI_LINKMAP, &found) != 0 || found == nullptr || found->l_name == nullptr) {
        return {};
    }
    std::error_code failed;
    const std::filesystem::path file = std::filesystem::canonical(found->l_name, failed);
    return failed ? std::string() : file.parent_path().string();
}

void nvidia_library::open_beside(const std::string& file) const {
    if (const std::string path = folder() + "/" + file; exists(path)) {
        ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    }
}

void* nvidia_library::try_find(const char* symbol) const noexcept { return ::dlsym(handle_, symbol); }

void* nvidia_library::address_of(const char* symbol) const {
    if (void* const address = try_find(symbol)) {
        return address;
    }
    throw missing_library(file_ + " has no function " + symbol + ": it is not " + title_ + ", or too old");
}

}  // namespace weir::backend
