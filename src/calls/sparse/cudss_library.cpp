#include "calls/sparse/cudss_library.hpp"

#include "backend/nvidia_library.hpp"
#include "weir/error.hpp"

namespace weir::calls {

namespace {

// Values of the CUDA runtime's libraryPropertyType.
constexpr int major_version = 0;
constexpr int minor_version = 1;

backend::nvidia_library open_cudss_file() {
    const backend::nvidia_library::name which{"cuDSS, NVIDIA's direct solver for sparse systems",
                                              cudss_file,
                                              {"libcudss.so.1", "libcudss.so.0"},
                                              {"cu13", "cu12"},
                                              "cuDSS 0.7 or later (Debian, Ubuntu: cudss from NVIDIA; Python: "
                                              "nvidia-cudss-cu13 or nvidia-cudss-cu12, for the CUDA "
                                              "version of the driver or an older one)"};
    try {
        return backend::nvidia_library(which);
    } catch (const missing_library&) {
        // cuDSS is linked with cuBLAS, which Python packages install where the loader does not search. Once cuBLAS is open, the loader
        // knows it by its name.
        try {
            const backend::nvidia_library cublas({"cuBLAS",
                                                  "WEIR_CUBLAS_LIBRARY",
                                                  {"libcublas.so.13", "libcublas.so.12"},
                                                  {"cu13", "cublas"},
                                                  "the CUDA toolkit's cuBLAS"});
            static_cast<void>(cublas);
        } catch (const missing_library&) {
            // The message about cuDSS below is the one that helps.
        }
        return backend::nvidia_library(which);
    }
}

cudss_functions open_cudss() {
    const backend::nvidia_library library = open_cudss_file();
    cudss_functions f;
    f.file = library.file();
    cudss_status (*get_property)(int, int*) = nullptr;
    library.find("cudssGetProperty", get_property);
    if (get_property(major_version, &f.major) != cudss_success ||
        get_property(minor_version, &f.minor) != cudss_success || (f.major == 0 && f.minor < 7)) {
        throw missing_library(f.file + " is version " + std::to_string(f.major) + "." + std::to_string(f.minor) +
                              " of cuDSS: install 0.7 or later");
    }
    library.find("cudssCreate", f.create);
    library.find("cudssDestroy", f.destroy);
    library.find("cudssSetStream", f.set_stream);
    library.find("cudssConfigCreate", f.config_create);
    library.find("cudssConfigDestroy", f.config_destroy);
    library.find("cudssConfigSet", f.config_set);
    library.find("cudssDataCreate", f.data_create);
    library.find("cudssDataDestroy", f.data_destroy);
    library.find("cudssDataGet", f.data_get);
    library.find("cudssExecute", f.execute);
    library.find("cudssMatrixCreateDn", f.matrix_create_dense);
    if (f.is_before_0_8()) {
        library.find("cudssMatrixCreateCsr", f.matrix_create_csr_before_0_8);
    } else {
        library.find("cudssMatrixCreateCsr", f.matrix_create_csr);
    }
    library.find("cudssMatrixSetValues", f.matrix_set_values);
    library.find("cudssMatrixDestroy", f.matrix_destroy);
    return f;
}

struct explained_cudss {
    cudss_status status;
    const char* name;
    const char* mend;
};

constexpr const char* cudss_report = "this is an error of Weir's: please report it";

// NOLINTNEXTLINE(modernize-avoid-c-arrays): its length is counted
constexpr explained_cudss cudss_statuses[] = {
    {1, "CUDSS_STATUS_NOT_INITIALIZED", cudss_report},
    {cudss_alloc_failed, "CUDSS_STATUS_ALLOC_FAILED",
     "give memory of the device back: drop arrays, call memory::trim, or solve a smaller system"},
    {3, "CUDSS_STATUS_INVALID_VALUE", cudss_report},
    {4, "CUDSS_STATUS_NOT_SUPPORTED", "the library cannot solve such a system: compute with execution cpu"},
    {5, "CUDSS_STATUS_EXECUTION_FAILED",
     "the device did not do the work: see whether an earlier operation broke its context, and whether the driver is as "
     "new as "
     "the library wants"},
    {6, "CUDSS_STATUS_INTERNAL_ERROR",
     "the library or the driver failed: run with CUDSS_LOG_LEVEL=5 in the environment, which says more"},
    {7, "CUDSS_STATUS_IR_FAILED", cudss_report},
};

}  // namespace

const cudss_functions& cudss() {
    // If opening throws, the next call tries again.
    static const auto* const functions = new cudss_functions(open_cudss());
    return *functions;
}

void expect_cudss(cudss_status status, const char* call) {
    if (status == cudss_success) {
        return;
    }
    std::string name = "status " + std::to_string(status);
    std::string mend = "see the documentation of the installed cuDSS";
    for (const explained_cudss& each : cudss_statuses) {
        if (each.status == status) {
            name += std::string(", ") + each.name;
            mend = each.mend;
        }
    }
    const std::string message = std::string(call) + " failed (" + name + "): " + mend;
    if (status == cudss_alloc_failed) {
        throw out_of_memory(message);
    }
    throw device_error(message);
}

}  // namespace weir::calls
