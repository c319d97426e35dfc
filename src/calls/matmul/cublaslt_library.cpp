#include "calls/matmul/cublaslt_library.hpp"

#include <vector>

#include "backend/nvidia_library.hpp"
#include "weir/error.hpp"

namespace weir::calls {

namespace {

/// Each is made for one major version of CUDA, and needs a driver for that one or a later one.
backend::nvidia_library open_cublaslt_file(int driver_version) {
    std::vector<const char*> files;
    if (driver_version >= 13000) {
        files.push_back("libcublasLt.so.13");
    }
    files.push_back("libcublasLt.so.12");
    return backend::nvidia_library(
        {"cuBLASLt, NVIDIA's library for products of matrices",
         "WEIR_CUBLASLT_LIBRARY",
         files,
         {"cu13", "cublas"},
         "the CUDA toolkit's cuBLAS (Debian, Ubuntu: libcublas-13-0 from NVIDIA, libcublaslt12 from "
         "the distribution; Python: nvidia-cublas)"});
}

cublaslt_functions open_cublaslt(int driver_version) {
    const backend::nvidia_library library = open_cublaslt_file(driver_version);
    cublaslt_functions f;
    library.find("cublasLtCreate", f.create);
    library.find("cublasLtMatmulDescCreate", f.desc_create);
    library.find("cublasLtMatmulDescDestroy", f.desc_destroy);
    library.find("cublasLtMatmulDescSetAttribute", f.desc_set);
    library.find("cublasLtMatrixLayoutCreate", f.layout_create);
    library.find("cublasLtMatrixLayoutDestroy", f.layout_destroy);
    library.find("cublasLtMatrixLayoutSetAttribute", f.layout_set);
    library.find("cublasLtMatmulPreferenceCreate", f.preference_create);
    library.find("cublasLtMatmulPreferenceDestroy", f.preference_destroy);
    library.find("cublasLtMatmulPreferenceSetAttribute", f.preference_set);
    library.find("cublasLtMatmulAlgoGetHeuristic", f.suggest);
    library.find("cublasLtMatmul", f.multiply);
    std::size_t (*get_version)() = nullptr;
    library.find("cublasLtGetVersion", get_version);
    f.version = get_version();
    f.file = library.file();
    return f;
}

struct explained_cublaslt {
    cublaslt_status status;
    const char* name;
    const char* mend;
};

constexpr const char* cublaslt_report = "this is an error of Weir's: please report it";

// NOLINTNEXTLINE(modernize-avoid-c-arrays): its length is counted
constexpr explained_cublaslt cublaslt_statuses[] = {
    {1, "CUBLAS_STATUS_NOT_INITIALIZED",
     "the library could not be set up: see whether an earlier operation broke the device's context, and whether the "
     "driver is as "
     "new as the library wants"},
    {cublaslt_alloc_failed, "CUBLAS_STATUS_ALLOC_FAILED",
     "give memory of the device back: drop arrays, call memory::trim, or multiply smaller matrices"},
    {7, "CUBLAS_STATUS_INVALID_VALUE", cublaslt_report},
    {8, "CUBLAS_STATUS_ARCH_MISMATCH", "the library cannot do this on this device: compute with execution cpu"},
    {11, "CUBLAS_STATUS_MAPPING_ERROR", cublaslt_report},
    {13, "CUBLAS_STATUS_EXECUTION_FAILED",
     "the device did not take the work: see whether an earlier operation broke its context"},
    {14, "CUBLAS_STATUS_INTERNAL_ERROR",
     "the library or the driver failed: run with CUBLASLT_LOG_LEVEL=5 in the environment, which says more"},
    {cublaslt_not_supported, "CUBLAS_STATUS_NOT_SUPPORTED",
     "the library cannot multiply such matrices: compute with execution cpu"},
    {16, "CUBLAS_STATUS_LICENSE_ERROR", "the library wants a licence: see its documentation"},
};

}  // namespace

const cublaslt_functions& cublaslt(int driver_version) {
    // If opening throws, the next call tries again. There is one driver in a process.
    static const auto* const functions = new cublaslt_functions(open_cublaslt(driver_version));
    return *functions;
}

void expect_cublaslt(cublaslt_status status, const char* call) {
    if (status == cublaslt_success) {
        return;
    }
    std::string name = "status " + std::to_string(status);
    std::string mend = "see the documentation of the installed cuBLAS";
    for (const explained_cublaslt& each : cublaslt_statuses) {
        if (each.status == status) {
            name += std::string(", ") + each.name;
            mend = each.mend;
        }
    }
    const std::string message = std::string(call) + " failed (" + name + "): " + mend;
    if (status == cublaslt_alloc_failed) {
        throw out_of_memory(message);
    }
    throw device_error(message);
}

}  // namespace weir::calls
