#include "calls/sparse/cusolver_library.hpp"

#include <vector>

#include "backend/nvidia_library.hpp"
#include "weir/error.hpp"

namespace weir::calls {

namespace {

cusolver_functions open_cusolver(int driver_version) {
    std::vector<const char*> files;
    if (driver_version >= 13000) {
        files.push_back("libcusolver.so.12");  // of CUDA 13
    }
    files.push_back("libcusolver.so.11");  // of CUDA 12
    const backend::nvidia_library library(
        {"cuSOLVER, NVIDIA's library for systems of equations",
         "WEIR_CUSOLVER_LIBRARY",
         files,
         {"cu13", "cusolver"},
         "the CUDA toolkit's cuSOLVER (Debian, Ubuntu: libcusolver-13-0 from NVIDIA, libcusolver11 from the "
         "distribution; Python: nvidia-cusolver)"});
    cusolver_functions f;
    f.file = library.file();
    library.find("cusolverSpCreate", f.create);
    library.find("cusolverSpDestroy", f.destroy);
    library.find("cusolverSpSetStream", f.set_stream);
    library.find("cusparseCreateMatDescr", f.create_description);
    library.find("cusparseDestroyMatDescr", f.destroy_description);
    library.find("cusolverSpScsrlsvqr", f.qr.s);
    library.find("cusolverSpDcsrlsvqr", f.qr.d);
    library.find("cusolverSpCcsrlsvqr", f.qr.c);
    library.find("cusolverSpZcsrlsvqr", f.qr.z);
    library.find("cusolverSpScsrlsvchol", f.cholesky.s);
    library.find("cusolverSpDcsrlsvchol", f.cholesky.d);
    library.find("cusolverSpCcsrlsvchol", f.cholesky.c);
    library.find("cusolverSpZcsrlsvchol", f.cholesky.z);
    return f;
}

struct explained_cusolver {
    cusolver_status status;
    const char* name;
    const char* mend;
};

constexpr const char* cusolver_report = "this is an error of Weir's: please report it";

// NOLINTNEXTLINE(modernize-avoid-c-arrays): its length is counted
constexpr explained_cusolver cusolver_statuses[] = {
    {1, "CUSOLVER_STATUS_NOT_INITIALIZED",
     "the library could not be set up: see whether an earlier operation broke the device's context"},
    {cusolver_alloc_failed, "CUSOLVER_STATUS_ALLOC_FAILED",
     "give memory of the device back: drop arrays, call memory::trim, or solve a smaller system"},
    {3, "CUSOLVER_STATUS_INVALID_VALUE", cusolver_report},
    {4, "CUSOLVER_STATUS_ARCH_MISMATCH", "the library cannot do this on this device: compute with execution cpu"},
    {6, "CUSOLVER_STATUS_EXECUTION_FAILED",
     "the device did not do the work: see whether an earlier operation broke its context"},
    {7, "CUSOLVER_STATUS_INTERNAL_ERROR",
     "the library or the driver failed: install cuDSS, which solves larger systems"},
    {8, "CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED", cusolver_report},
};

}  // namespace

const cusolver_functions& cusolver(int driver_version) {
    // If opening throws, the next call tries again. There is one driver in a process.
    static const auto* const functions = new cusolver_functions(open_cusolver(driver_version));
    return *functions;
}

void expect_cusolver(cusolver_status status, const char* call) {
    if (status == cusolver_success) {
        return;
    }
    std::string name = "status " + std::to_string(status);
    std::string mend = "see the documentation of the installed cuSOLVER";
    for (const explained_cusolver& each : cusolver_statuses) {
        if (each.status == status) {
            name += std::string(", ") + each.name;
            mend = each.mend;
        }
    }
    const std::string message = std::string(call) + " failed (" + name + "): " + mend;
    if (status == cusolver_alloc_failed) {
        throw out_of_memory(message);
    }
    throw device_error(message);
}

}  // namespace weir::calls
