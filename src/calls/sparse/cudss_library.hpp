#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/setting.hpp"

namespace weir::calls {

using cudss_status = int;

// Values of cuDSS's interface (cuDSS documentation 0.7 to 1.0, "cuDSS Data Types"), and of the CUDA runtime's cudaDataType.
inline constexpr cudss_status cudss_success = 0;
inline constexpr cudss_status cudss_alloc_failed = 2;
inline constexpr int cudss_data_info = 0;
inline constexpr int cudss_data_replaced_pivots = 2;  ///< of the type of the matrix's indices
/// 16 numbers of 64 bits, of bytes.
inline constexpr int cudss_data_memory_estimates = 13;
inline constexpr int cudss_data_memory_estimates_before_0_8 = 12;
inline constexpr std::size_t cudss_peak_of_device = 1;  ///< which of them
inline constexpr int cudss_config_matching =
    3;  ///< before 0.8 whether rows are matched, from then on by which algorithm
inline constexpr int cudss_matching_is_on_before_0_8 = 1;
inline constexpr int cudss_matching_auto = 6;
inline constexpr int cudss_column_major = 0;
inline constexpr int cudss_base_zero = 0;

/// The phases of cudssExecute, as bits.
enum class cudss_phase : int {
    analysis = 1 + 2,
    factorization = 4,
    solve = 16 + 32 + 64 + 128 + 256 + 512,
};

enum class cudss_number : int { r32f = 0, r64f = 1, c32f = 4, c64f = 5, r32i = 10, r64i = 24 };
enum class cudss_matrix_type : int {
    general = 0,
    symmetric = 1,
    hermitian = 2,
    positive_definite_real = 3,
    positive_definite_complex = 4,
};
enum class cudss_view : int { full = 0, lower = 1, upper = 2 };

/// The functions of NVIDIA's sparse direct solver, versions 0.7 to 1.0. Opened at run time and declared here anew, so
/// that Weir is built without it. Memory and streams are the driver's. Handles, configurations, data and matrices are opaque
/// pointers.
struct cudss_functions {
    cudss_status (*create)(void** handle) = nullptr;
    cudss_status (*destroy)(void* handle) = nullptr;
    cudss_status (*set_stream)(void* handle, void* stream) = nullptr;
    cudss_status (*config_create)(void** config) = nullptr;
    cudss_status (*config_destroy)(void* config) = nullptr;
    cudss_status (*config_set)(void* config, int what, const void* value, std::size_t bytes) = nullptr;
    cudss_status (*data_create)(void* handle, void** data) = nullptr;
    cudss_status (*data_destroy)(void* handle, void* data) = nullptr;
    cudss_status (*data_get)(void* handle, void* data, int what, void* value, std::size_t bytes,
                             std::size_t* written) = nullptr;
    cudss_status (*execute)(void* handle, int phase, void* config, void* data, void* matrix, void* solution,
                            void* right_hand_side) = nullptr;
    cudss_status (*matrix_create_dense)(void** matrix, std::int64_t rows, std::int64_t columns,
                                        std::int64_t leading_dimension, void* values, int type, int layout) = nullptr;
    /// From 0.8 on: the offsets have their own type.
    cudss_status (*matrix_create_csr)(void** matrix, std::int64_t rows, std::int64_t columns, std::int64_t nonzeros,
                                      const void* row_start, const void* row_end, const void* column_indices,
                                      const void* values, int offset_type, int index_type, int value_type, int type,
                                      int view, int base) = nullptr;
    /// Before 0.8.
    cudss_status (*matrix_create_csr_before_0_8)(void** matrix, std::int64_t rows, std::int64_t columns,
                                                 std::int64_t nonzeros, void* row_start, void* row_end,
                                                 void* column_indices, void* values, int index_type, int value_type,
                                                 int type, int view, int base) = nullptr;
    cudss_status (*matrix_set_values)(void* matrix, void* values) = nullptr;
    cudss_status (*matrix_destroy)(void* matrix) = nullptr;

    std::string file;  ///< the file that was opened
    int major = 0;     ///< its version
    int minor = 0;

    [[nodiscard]] bool is_before_0_8() const noexcept { return major == 0 && minor < 8; }
};

/// The variable that names the file; "none" if cuDSS is not to be used.
inline constexpr detail::setting cudss_file = "WEIR_CUDSS_LIBRARY";

/// The library of this machine, unless WEIR_CUDSS_LIBRARY names another. Opened at the first call that succeeds, and never closed.
/// Any thread. Throws missing_library; each later call searches again.
[[nodiscard]] const cudss_functions& cudss();

/// Throws unless `status` is success: out_of_memory if the library could not allocate memory, else device_error. The message has the
/// call, the status, and how to correct the problem.
void expect_cudss(cudss_status status, const char* call);

}  // namespace weir::calls
