#include "backend/cuda/api/nvrtc_api.hpp"

#include <filesystem>
#include <system_error>

#include "backend/nvidia_library.hpp"
#include "weir/error.hpp"

namespace weir::backend::cuda {

namespace {

constexpr const char* how_to_install =
    "the CUDA toolkit's NVRTC (Debian, Ubuntu: cuda-nvrtc-13-0 from NVIDIA, libnvrtc12 from the distribution; Python: "
    "nvidia-cuda-nvrtc)";

/// A driver loads code from compilers of its own major version, and of older ones.
nvidia_library open_library(int driver_version) {
    constexpr const char* title = "NVRTC, NVIDIA's run-time compiler";
    constexpr detail::setting variable = "WEIR_NVRTC_LIBRARY";
    if (driver_version >= 13000) {
        return nvidia_library({title,
                               variable,
                               {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"},
                               {"cu13", "cuda_nvrtc"},
                               how_to_install});
    }
    if (driver_version >= 12000) {
        return nvidia_library(
            {title, variable, {"libnvrtc.so.12", "libnvrtc.so.11.2"}, {"cuda_nvrtc"}, how_to_install});
    }
    return nvidia_library({title, variable, {"libnvrtc.so.11.2"}, {"cuda_nvrtc"}, how_to_install});
}

/// In a toolkit, and in Python packages, the headers are near the libraries.
std::string headers_near(const std::string& folder) {
    if (folder.empty()) {
        return {};
    }
    const std::filesystem::path libraries(folder);
    for (const char* const way : {"../include", "../../../include", "../../cuda_runtime/include"}) {
        std::error_code failed;
        const auto found = std::filesystem::canonical(libraries / way / "cuda_runtime.h", failed);
        if (!failed) {
            return found.parent_path().string();
        }
    }
    return {};
}

nvrtc_api open(int driver_version) {
    const nvidia_library library = open_library(driver_version);
    nvrtc_api api;
    library.find("nvrtcVersion", api.get_version);
    library.find("nvrtcGetErrorString", api.error_string);
    library.find("nvrtcGetNumSupportedArchs", api.count_architectures);
    library.find("nvrtcGetSupportedArchs", api.get_architectures);
    library.find("nvrtcCreateProgram", api.create_program);
    library.find("nvrtcDestroyProgram", api.destroy_program);
    library.find("nvrtcAddNameExpression", api.add_name_expression);
    library.find("nvrtcCompileProgram", api.compile_program);
    library.find("nvrtcGetProgramLogSize", api.log_size);
    library.find("nvrtcGetProgramLog", api.get_log);
    library.find("nvrtcGetCUBINSize", api.cubin_size);
    library.find("nvrtcGetCUBIN", api.get_cubin);
    library.find("nvrtcGetPTXSize", api.ptx_size);
    library.find("nvrtcGetPTX", api.get_ptx);
    library.find("nvrtcGetLoweredName", api.lowered_name);
    api.file = library.file();
    api.headers = headers_near(library.folder());
    int count = 0;
    if (api.get_version(&api.major, &api.minor) != nvrtc_success || api.count_architectures(&count) != nvrtc_success ||
        count <= 0) {
        throw missing_library(api.file + " does not say which version of NVRTC it is: install " + how_to_install);
    }
    library.open_beside("libnvrtc-builtins.so." + std::to_string(api.major) + "." + std::to_string(api.minor));
    api.architectures.resize(static_cast<std::size_t>(count));
    api.get_architectures(api.architectures.data());
    return api;
}

}  // namespace

const nvrtc_api& nvrtc(int driver_version) {
    // If opening throws, the next call tries again. There is one driver in a process.
    static const auto* const api = new nvrtc_api(open(driver_version));
    return *api;
}

}  // namespace weir::backend::cuda
