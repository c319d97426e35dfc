#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace weir::calls {

using cublaslt_status = int;

// Values of cuBLAS's interface (cuBLAS documentation 12.0 to 13.1, "Using the cuBLASLt API"), and of the CUDA runtime's cudaDataType.
inline constexpr cublaslt_status cublaslt_success = 0;
inline constexpr cublaslt_status cublaslt_alloc_failed = 3;
inline constexpr cublaslt_status cublaslt_not_supported = 15;
inline constexpr int cublaslt_no_transpose = 0;
inline constexpr int cublaslt_transpose = 1;
inline constexpr int cublaslt_compute_32f = 68;
inline constexpr int cublaslt_compute_64f = 70;

enum class cublaslt_number : int { r32f = 0, r64f = 1, r16f = 2, c32f = 4, c64f = 5, r16bf = 14 };

/// Attributes of a product.
enum class cublaslt_desc : int { transpose_a = 3, transpose_b = 4, epilogue = 7, bias_pointer = 8 };
/// Attributes of a matrix.
enum class cublaslt_layout : int { batch_count = 5, batch_offset = 6 };
/// Attributes of the search for an algorithm.
enum class cublaslt_preference : int {
    workspace_bytes = 1,
    alignment_a = 5,
    alignment_b = 6,
    alignment_c = 7,
    alignment_d = 8
};
/// Epilogues: bits.
inline constexpr std::uint32_t cublaslt_epilogue_default = 1;
inline constexpr std::uint32_t cublaslt_epilogue_relu = 2;
inline constexpr std::uint32_t cublaslt_epilogue_bias = 4;
inline constexpr std::uint32_t cublaslt_epilogue_gelu = 32;

/// What the library tells apart, in words of its own.
struct cublaslt_algorithm {
    std::array<std::uint64_t, 8> words;
};

/// An algorithm that the library suggests.
struct cublaslt_suggestion {
    cublaslt_algorithm algorithm;
    std::size_t workspace_bytes;
    cublaslt_status status;
    float waves;
    std::array<int, 4> reserved;
};
static_assert(sizeof(cublaslt_suggestion) == 96, "the library writes it");

/// The functions of NVIDIA's library for products of matrices. Opened at run time and described here in our own words, so that Weir is
/// built without it. Memory and streams are the driver's. Handles and descriptions are pointers to what only the library knows.
struct cublaslt_functions {
    cublaslt_status (*create)(void** handle) = nullptr;
    cublaslt_status (*desc_create)(void** desc, int compute_type, int scale_type) = nullptr;
    cublaslt_status (*desc_destroy)(void* desc) = nullptr;
    cublaslt_status (*desc_set)(void* desc, int attribute, const void* value, std::size_t bytes) = nullptr;
    cublaslt_status (*layout_create)(void** layout, int type, std::uint64_t rows, std::uint64_t columns,
                                     std::int64_t leading_dimension) = nullptr;
    cublaslt_status (*layout_destroy)(void* layout) = nullptr;
    cublaslt_status (*layout_set)(void* layout, int attribute, const void* value, std::size_t bytes) = nullptr;
    cublaslt_status (*preference_create)(void** preference) = nullptr;
    cublaslt_status (*preference_destroy)(void* preference) = nullptr;
    cublaslt_status (*preference_set)(void* preference, int attribute, const void* value, std::size_t bytes) = nullptr;
    cublaslt_status (*suggest)(void* handle, void* desc, void* a, void* b, void* c, void* d, void* preference,
                               int wanted, cublaslt_suggestion* results, int* found) = nullptr;
    cublaslt_status (*multiply)(void* handle, void* desc, const void* alpha, const void* a, void* a_layout,
                                const void* b, void* b_layout, const void* beta, const void* c, void* c_layout, void* d,
                                void* d_layout, const cublaslt_algorithm* algorithm, void* workspace,
                                std::size_t workspace_bytes, void* stream) = nullptr;

    std::string file;         ///< what was opened
    std::size_t version = 0;  ///< 130100 for 13.1
};

/// The library of this machine, for a driver of this version (13000 for CUDA 13.0), unless WEIR_CUBLASLT_LIBRARY names another. Opened
/// at the first call that succeeds, and kept for ever. Any thread. Throws missing_library, at each call anew until it is there.
[[nodiscard]] const cublaslt_functions& cublaslt(int driver_version);

/// Throws unless `status` is success: out_of_memory if the library could not get memory, else device_error. The message names the
/// call, the status, and what mends it.
void expect_cublaslt(cublaslt_status status, const char* call);

}  // namespace weir::calls
