#include "calls/fft/cufft_library.hpp"

#include <vector>

#include "backend/nvidia_library.hpp"
#include "weir/error.hpp"

namespace weir::calls {

namespace {

using backend::nvidia_library;

/// Each version of the library is made for one major version of CUDA, and needs a driver for that one or a later one.
nvidia_library open_library(int driver_version) {
    std::vector<const char*> files;
    if (driver_version >= 13000) {
        files.push_back("libcufft.so.12");
    }
    if (driver_version >= 12000) {
        files.push_back("libcufft.so.11");
    }
    files.push_back("libcufft.so.10");
    return nvidia_library({"cuFFT, NVIDIA's library for Fourier transforms",
                           "WEIR_CUFFT_LIBRARY",
                           files,
                           {"cu13", "cufft"},
                           "the CUDA toolkit's cuFFT (Debian, Ubuntu: libcufft-13-0 from NVIDIA, libcufft11 from the "
                           "distribution; Python: nvidia-cufft)"});
}

cufft_functions open(int driver_version) {
    const nvidia_library library = open_library(driver_version);
    cufft_functions f;
    library.find("cufftCreate", f.create);
    library.find("cufftDestroy", f.destroy);
    library.find("cufftSetAutoAllocation", f.set_auto_allocation);
    library.find("cufftMakePlanMany64", f.make_plan_many);
    library.find("cufftSetStream", f.set_stream);
    library.find("cufftSetWorkArea", f.set_work_area);
    library.find("cufftExecC2C", f.execute_c2c);
    library.find("cufftExecZ2Z", f.execute_z2z);
    library.find("cufftExecR2C", f.execute_r2c);
    library.find("cufftExecD2Z", f.execute_d2z);
    library.find("cufftExecC2R", f.execute_c2r);
    library.find("cufftExecZ2D", f.execute_z2d);
    f.file = library.file();
    cufft_status (*get_version)(int*) = nullptr;
    library.find("cufftGetVersion", get_version);
    if (get_version(&f.version) != cufft_success) {
        f.version = 0;
    }
    return f;
}

struct explained {
    cufft_status status;
    const char* name;
    const char* mend;
};

constexpr const char* report = "this is an error of Weir's: please report it";
constexpr const char* reinstall = "install cuFFT whole, of the same CUDA version as the driver or an older one";

// NOLINTNEXTLINE(modernize-avoid-c-arrays): its length is counted
constexpr explained statuses[] = {
    {1, "CUFFT_INVALID_PLAN", report},
    {cufft_alloc_failed, "CUFFT_ALLOC_FAILED",
     "give memory of the device back: drop arrays, call memory::trim, or transform less at once"},
    {3, "CUFFT_INVALID_TYPE", report},
    {4, "CUFFT_INVALID_VALUE", report},
    {5, "CUFFT_INTERNAL_ERROR",
     "the library or the driver failed: see whether an earlier operation broke the device's context, and whether the "
     "driver is as new as the library wants"},
    {6, "CUFFT_EXEC_FAILED", "the device did not take the work: see whether an earlier operation broke its context"},
    {7, "CUFFT_SETUP_FAILED", reinstall},
    {8, "CUFFT_INVALID_SIZE", "the library does not transform this length: choose another one, or execution cpu"},
    {9, "CUFFT_UNALIGNED_DATA", report},
    {10, "CUFFT_INCOMPLETE_PARAMETER_LIST", report},
    {11, "CUFFT_INVALID_DEVICE", report},
    {12, "CUFFT_PARSE_ERROR", reinstall},
    {13, "CUFFT_NO_WORKSPACE", report},
    {14, "CUFFT_NOT_IMPLEMENTED", "the library cannot do this: compute with execution cpu"},
    {15, "CUFFT_LICENSE_ERROR", "the library wants a licence: see its documentation"},
    {16, "CUFFT_NOT_SUPPORTED", "the library cannot do this on this device: compute with execution cpu"},
    {17, "CUFFT_MISSING_DEPENDENCY", reinstall},
    {18, "CUFFT_NVRTC_FAILURE", reinstall},
    {19, "CUFFT_NVJITLINK_FAILURE", reinstall},
    {20, "CUFFT_NVSHMEM_FAILURE", reinstall},
};

}  // namespace

const cufft_functions& cufft(int driver_version) {
    // If opening throws, the next call tries again. There is one driver in a process.
    static const auto* const functions = new cufft_functions(open(driver_version));
    return *functions;
}

void expect_cufft(cufft_status status, const char* call) {
    if (status == cufft_success) {
        return;
    }
    std::string name = "status " + std::to_string(status);
    std::string mend = "see the documentation of the installed cuFFT";
    for (const explained& each : statuses) {
        if (each.status == status) {
            name += std::string(", ") + each.name;
            mend = each.mend;
        }
    }
    const std::string message = std::string(call) + " failed (" + name + "): " + mend;
    if (status == cufft_alloc_failed) {
        throw out_of_memory(message);
    }
    throw device_error(message);
}

}  // namespace weir::calls
