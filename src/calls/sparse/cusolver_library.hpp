#pragma once

#include <string>

namespace weir::calls {

using cusolver_status = int;

// Values of cuSOLVER's interface (cuSOLVER documentation 12.0 to 13.1, "cuSolverSP: sparse LAPACK Function Reference").
inline constexpr cusolver_status cusolver_success = 0;
inline constexpr cusolver_status cusolver_alloc_failed = 2;
/// Elements are reordered by the reverse Cuthill-McKee algorithm, so that fewer are filled in.
inline constexpr int cusolver_reorder = 1;

/// The functions of cuSOLVER that solve one sparse system for one right-hand side, in device memory. Each of these analyzes, factorizes and
/// solves, and waits for the device. Opened at run time and declared here anew, so that Weir is built without it.
struct cusolver_functions {
    /// `singular`, on the host, becomes the first row where the matrix is singular under the tolerance, or -1.
    template <class Real>
    using solver = cusolver_status(void* handle, int n, int nonzeros, const void* description, const void* values,
                                   const int* offsets, const int* columns, const void* b, Real tolerance, int reorder,
                                   void* x, int* singular);
    /// For float32, float64, complex64 and complex128.
    struct solvers {
        solver<float>* s = nullptr;
        solver<double>* d = nullptr;
        solver<float>* c = nullptr;
        solver<double>* z = nullptr;
    };

    cusolver_status (*create)(void** handle) = nullptr;
    cusolver_status (*destroy)(void* handle) = nullptr;
    cusolver_status (*set_stream)(void* handle, void* stream) = nullptr;
    /// cuSPARSE's, which cuSOLVER is linked with: a general matrix whose indices begin with 0.
    int (*create_description)(void** description) = nullptr;
    int (*destroy_description)(void* description) = nullptr;
    solvers qr;
    solvers cholesky;

    std::string file;  ///< the file that was opened
};

/// The library of this machine, for a driver of this version (13000 for CUDA 13.0), unless WEIR_CUSOLVER_LIBRARY names another. Opened at the
/// first call that succeeds, and never closed. Any thread. Throws missing_library; each later call searches again.
[[nodiscard]] const cusolver_functions& cusolver(int driver_version);

/// Throws unless `status` is success: out_of_memory if the library could not allocate memory, else device_error. The message has the
/// call, the status, and how to correct the problem.
void expect_cusolver(cusolver_status status, const char* call);

}  // namespace weir::calls
