#include "support/compiled_kernels.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace weir::test {

namespace {

constexpr const char* shim = R"(
#include <cmath>
#include <cstring>
#define __device__
#define __global__
struct three { unsigned x = 0; };
static three threadIdx, blockIdx, blockDim, gridDim;
)";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
        text.replace(at, what.size(), by);
    }
    return text;
}

std::string content_of(const std::filesystem::path& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

compiled_kernels::~compiled_kernels() {
    if (library_ != nullptr) {
        dlclose(library_);
    }
}

std::size_t compiled_kernels::add(const array_kernels::description& what) {
    const auto found = std::find(all_.begin(), all_.end(), what);
    if (found != all_.end()) {
        return static_cast<std::size_t>(found - all_.begin());
    }
    const std::string number = std::to_string(all_.size());
    // Each in a namespace of its own.
    std::string source = replaced(array_kernels::source_of(what), "namespace weir", "namespace weir_" + number);
    source = replaced(source, "weir::", "weir_" + number + "::");
    source = replaced(source, "weir_kernel", "kernel_" + number);
    source_ += source + R"(
extern "C" void run_)" +
               number + R"((const void* words, unsigned blocks) {
    blockDim.x = )" +
               std::to_string(array_kernels::threads) + R"(;
    gridDim.x = blocks;
    for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
        for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) {
            kernel_)" +
               number + "(*static_cast<const weir_" + number + R"(::parameters*>(words));
        }
    }
}
)";
    all_.push_back(what);
    return all_.size() - 1;
}

std::string compiled_kernels::compile() {
    std::string folder = (std::filesystem::temp_directory_path() / "weir-kernels-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) {
        return "no folder " + folder;
    }
    const std::filesystem::path in(folder);
    std::ofstream(in / "kernels.cpp") << shim << source_;
    const std::string command = std::string(WEIR_TEST_COMPILER) +
                                " -std=c++17 -O0 -w -ffp-contract=off -fno-strict-aliasing -shared -fPIC -o " + folder +
                                "/kernels.so " + folder + "/kernels.cpp > " + folder + "/log 2>&1";
    std::string log;
    if (std::system(command.c_str()) != 0) {  // NOLINT(cert-env33-c): the compiler is one of ours
        log = content_of(in / "log") + "\nfailed: " + command;
    } else if (library_ = dlopen((folder + "/kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL); library_ == nullptr) {
        log = dlerror();
    }
    std::filesystem::remove_all(in);
    return log;
}

void compiled_kernels::run(std::size_t number, std::span<const std::uint64_t> words, unsigned blocks) const {
    void* const found = dlsym(library_, ("run_" + std::to_string(number)).c_str());
    reinterpret_cast<void (*)(const void*, unsigned)>(found)(words.data(), blocks);
}

}  // namespace weir::test
