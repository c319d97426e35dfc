#pragma once

#include <cstdint>
#include <string>

namespace weir::calls {

// Values of CBLAS, the C interface of BLAS ("Basic Linear Algebra Subprograms Technical Forum Standard", 2001, appendix B).
inline constexpr int cblas_column_major = 102;
inline constexpr int cblas_no_transpose = 111;
inline constexpr int cblas_transpose = 112;

/// How rows, columns and distances are counted there.
using blas_integer = int;

/// The functions of a library with the interface of CBLAS that multiply. Opened at run time and described here in our own
/// words, so that Weir is built without it. Complex numbers are passed by address.
struct blas_functions {
    template <class T, class Factor>
    using gemm = void(int order, int transpose_a, int transpose_b, blas_integer m, blas_integer n, blas_integer k,
                      Factor alpha, const T* a, blas_integer lda, const T* b, blas_integer ldb, Factor beta, T* c,
                      blas_integer ldc);
    template <class T, class Factor>
    using gemv = void(int order, int transpose, blas_integer m, blas_integer n, Factor alpha, const T* a,
                      blas_integer lda, const T* x, blas_integer incx, Factor beta, T* y, blas_integer incy);

    gemm<float, float>* sgemm = nullptr;
    gemm<double, double>* dgemm = nullptr;
    gemm<void, const void*>* cgemm = nullptr;
    gemm<void, const void*>* zgemm = nullptr;
    gemv<float, float>* sgemv = nullptr;
    gemv<double, double>* dgemv = nullptr;
    gemv<void, const void*>* cgemv = nullptr;
    gemv<void, const void*>* zgemv = nullptr;

    std::string file;     ///< what was opened
    std::string version;  ///< what it says of itself; empty if nothing
};

/// libopenblas.so.0 or else libblas.so.3, unless WEIR_BLAS_LIBRARY names another. Opened at the first call. Throws
/// missing_library, at each call anew until it is there. Any thread.
[[nodiscard]] const blas_functions& blas();

}  // namespace weir::calls
