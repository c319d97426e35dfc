#pragma once

#include <cstddef>
#include <string>

namespace weir::calls {

/// One dimension of a transform or of a batch: extent and strides, as in FFTW's 64-bit "guru" interface
/// (FFTW manual 3.3.10, section 4.5.6).
struct fftw_dimension {
    std::ptrdiff_t n;
    std::ptrdiff_t in_stride;
    std::ptrdiff_t out_stride;
};

// Values of FFTW's interface (manual, sections 4.3.1 and 4.3.2).
inline constexpr int fftw_forward = -1;
inline constexpr int fftw_backward = +1;
inline constexpr unsigned fftw_destroy_input = 1U << 0;
inline constexpr unsigned fftw_unaligned = 1U << 1;
inline constexpr unsigned fftw_preserve_input = 1U << 4;
inline constexpr unsigned fftw_estimate = 1U << 6;

/// The functions of an FFTW-compatible library for one precision. Opened at run time and declared here anew, so that
/// Weir is built and distributed without FFTW, whose licence is the GPL.
template <class T>
struct fftw_functions {
    struct opaque_plan;
    using plan = opaque_plan*;
    using complex = T[2];

    plan (*plan_dft)(int rank, const fftw_dimension* dims, int batch_rank, const fftw_dimension* batch_dims,
                     complex* in, complex* out, int sign, unsigned flags) = nullptr;
    plan (*plan_dft_r2c)(int rank, const fftw_dimension* dims, int batch_rank, const fftw_dimension* batch_dims, T* in,
                         complex* out, unsigned flags) = nullptr;
    plan (*plan_dft_c2r)(int rank, const fftw_dimension* dims, int batch_rank, const fftw_dimension* batch_dims,
                         complex* in, T* out, unsigned flags) = nullptr;
    void (*execute_dft)(plan, complex* in, complex* out) = nullptr;
    void (*execute_dft_r2c)(plan, T* in, complex* out) = nullptr;
    void (*execute_dft_c2r)(plan, complex* in, T* out) = nullptr;
    void (*destroy_plan)(plan) = nullptr;

    std::string file;     ///< the file that was opened
    std::string version;  ///< as the library reports it; empty if it does not
};

/// The library for float or double: libfftw3f.so.3 or libfftw3.so.3, unless WEIR_FFTW_LIBRARY_F or WEIR_FFTW_LIBRARY
/// names another. Opened at the first call. Throws missing_library; each later call searches again. Any thread.
template <class T>
[[nodiscard]] const fftw_functions<T>& fftw();

}  // namespace weir::calls
