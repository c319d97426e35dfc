#include "backend/cuda/kernels/loaded_module.hpp"

#include <array>
#include <cstdint>

#include "weir/error.hpp"

namespace weir::backend::cuda {

namespace {

// CUjit_option
constexpr int error_log_buffer = 5;
constexpr int error_log_buffer_bytes = 6;

/// Whether the error is due to the code, and not the device.
bool wrong_image(result what) {
    constexpr result invalid_image = 200;
    constexpr result no_binary_for_gpu = 209;
    constexpr result invalid_ptx = 218;
    constexpr result unsupported_ptx_version = 222;
    return what == invalid_image || what == no_binary_for_gpu || what == invalid_ptx || what == unsupported_ptx_version;
}

}  // namespace

void load_function(const context& in, function_handle what) {
    if (in.api().function_load != nullptr) {
        in.expect(in.api().function_load(what), "cuFuncLoad");
    } else {
        // Older drivers load a function when they are asked for its attributes.
        int ignored = 0;
        in.expect(in.api().function_get_attribute(&ignored, function_attribute::max_threads_per_block, what),
                  "cuFuncGetAttribute");
    }
}

loaded_module::loaded_module(const context& in, const std::string& image, const std::string& what) : in_(&in) {
    std::array<char, 8192> log{};
    std::array<int, 2> names{error_log_buffer, error_log_buffer_bytes};
    std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(std::uintptr_t{log.size() - 1})};
    const in_relaxed_context scope(in);
    in.expect(scope.entered(), "cuCtxSetCurrent");
    const result done = in.api().module_load(&handle_, image.c_str(), names.size(), names.data(), values.data());
    if (wrong_image(done)) {
        throw argument_error("the code of " + what + " cannot be loaded into " + in.device_name() + " (sm_" +
                             in.architecture() + "): " + describe(in.api(), done) +
                             (log[0] != '\0' ? "\n" + std::string(log.data()) : ""));
    }
    in.expect(done, "cuModuleLoadDataEx");
}

loaded_module::~loaded_module() {
    const in_relaxed_context scope(*in_);
    in_->api().module_unload(handle_);
}

function_handle loaded_module::find(const std::string& symbol) const {
    const in_relaxed_context scope(*in_);
    function_handle found = nullptr;
    const result done = in_->api().module_function(&found, handle_, symbol.c_str());
    if (done == error_not_found) {
        return nullptr;
    }
    in_->expect(done, "cuModuleGetFunction");
    load_function(*in_, found);
    return found;
}

}  // namespace weir::backend::cuda
