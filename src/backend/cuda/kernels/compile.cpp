#include "backend/cuda/kernels/compile.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "backend/cuda/device/context.hpp"
#include "backend/cuda/kernels/compiler.hpp"
#include "backend/cuda/kernels/loaded_module.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/error.hpp"

namespace weir::backend::cuda {

namespace {

/// Key of a kernel, with references to strings that it does not own.
struct kernel_key {
    const context* in;
    std::string_view name;
    std::span<const std::string> options;
    std::string_view source;
};

struct owned_key {
    const context* in;
    std::string name;
    std::vector<std::string> options;
    std::string source;

    [[nodiscard]] kernel_key view() const noexcept { return {in, name, options, source}; }
};

struct key_order {
    using is_transparent = void;

    static bool before(const kernel_key& a, const kernel_key& b) {
        if (a.in != b.in) {
            return std::less<>()(a.in, b.in);
        }
        if (a.name != b.name) {
            return a.name < b.name;
        }
        if (!std::equal(a.options.begin(), a.options.end(), b.options.begin(), b.options.end())) {
            return std::lexicographical_compare(a.options.begin(), a.options.end(), b.options.begin(), b.options.end());
        }
        return a.source < b.source;
    }
    bool operator()(const owned_key& a, const owned_key& b) const { return before(a.view(), b.view()); }
    bool operator()(const owned_key& a, const kernel_key& b) const { return before(a.view(), b); }
    bool operator()(const kernel_key& a, const owned_key& b) const { return before(a, b.view()); }
};

/// One kernel, perhaps still being compiled.
struct made_kernel {
    detail::mutex mutex;  ///< guards the rest; held while the kernel is compiled, so that it is compiled once
    std::unique_ptr<loaded_module> code;
    function_handle function = nullptr;
};

/// All kernels. Never destroyed.
struct all_kernels {
    detail::mutex mutex;  ///< guards `made`, not the contents of its entries; no other lock is taken under it
    std::map<owned_key, std::shared_ptr<made_kernel>, key_order> made;

    std::shared_ptr<made_kernel> entry(const kernel_key& key) {
        const std::lock_guard lock(mutex);
        if (const auto found = made.find(key); found != made.end()) {
            return found->second;
        }
        return made
            .emplace(
                owned_key{
                    key.in, std::string(key.name), {key.options.begin(), key.options.end()}, std::string(key.source)},
                std::make_shared<made_kernel>())
            .first->second;
    }
};

all_kernels& kernels() {
    static auto* const all = new all_kernels;
    return *all;
}

void make(made_kernel& kernel, const context& in, const compile_request& what) {
    try {
        const compiled_program program = compile(in, what);
        auto code = std::make_unique<loaded_module>(in, program.image, "the kernel " + what.name);
        kernel.function = code->find(program.symbol);
        kernel.code = std::move(code);
    } catch (const argument_error& wrong) {
        throw device_error(wrong.what());  // the source is Weir's, not an argument of the caller
    }
    if (kernel.function == nullptr) {
        throw device_error("the source has no kernel " + what.name);
    }
}

}  // namespace

function_handle compiled(const context& in, const std::string& source, const char* name,
                         std::span<const std::string> options) {
    const std::shared_ptr<made_kernel> kernel = kernels().entry({&in, name, options, source});
    const std::lock_guard lock(kernel->mutex);
    if (kernel->function == nullptr) {
        const std::string text = name;
        make(*kernel, in, {source, text, options});
    }
    return kernel->function;
}

}  // namespace weir::backend::cuda
