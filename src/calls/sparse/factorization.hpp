#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "calls/sparse/structure.hpp"
#include "weir/device.hpp"

namespace weir::calls {

/// Elements of one or several right-hand sides, or of solutions: one in each column.
struct dense_columns {
    std::byte* first = nullptr;
    std::int64_t count = 1;
    std::int64_t row_stride = 0;     ///< bytes from one row to the next
    std::int64_t column_stride = 0;  ///< bytes from one column to the next
};

/// How the operations of a stream do the phases.
enum class phase_form : std::uint8_t {
    host_code,  ///< by host code, on the thread that runs the operation, in memory that it reaches
    host_task,  ///< by a library that the thread waits for, in device memory
};

/// One matrix, as one library analyzes and factorizes it. The operations that call it are ordered: analyze before factorize before
/// solve, each alone, except solutions where `solves_at_once`. The addresses that it computes between stay valid until the operation
/// is complete.
class factorization {
public:
    /// What the library requires, and how it works.
    struct manner {
        phase_form form = phase_form::host_code;
        /// Whether it refers to the indices after the analysis: then they must not change while it lives.
        bool refers_to_indices = false;
        /// Whether the analysis reads the values, too.
        bool analyzes_values = false;
        /// Whether it needs the rows of right-hand sides and of solutions one after the other, and the two in separate memory.
        bool wants_columns = false;
        /// Whether several solutions may be computed at the same time.
        bool solves_at_once = true;
        /// Whether each solution does the work of the other phases again.
        bool solves_from_values = false;
    };

    factorization() = default;
    factorization(const factorization&) = delete;
    factorization& operator=(const factorization&) = delete;
    virtual ~factorization() = default;

    /// The library's name, with its file, for explain().
    [[nodiscard]] virtual std::string library() const = 0;
    [[nodiscard]] virtual const manner& how() const noexcept = 0;
    /// `values`: null unless the library needs them. Throws structure_error for indices that violate the requirements of csr_matrix;
    /// out_of_memory, device_error, std::bad_alloc.
    virtual void analyze(const std::byte* offsets, const std::byte* columns, const std::byte* values) = 0;
    /// Compares the indices of another matrix with those of the analysis, as analyzed_indices::expect does. Called where `factorize` is.
    virtual void expect_places(const std::byte* offsets, const std::byte* columns) = 0;
    /// Throws argument_error for a matrix that is singular, or not positive definite; out_of_memory, device_error, std::bad_alloc.
    virtual void factorize(const std::byte* values) = 0;
    /// Throws out_of_memory, device_error, std::bad_alloc.
    virtual void solve(const dense_columns& b, const dense_columns& x) = 0;
};

/// Throws argument_error, with what to do about it: `library` has no factors of a matrix of that kind. `found`: what it says.
[[noreturn]] void refuse_matrix(matrix_kind kind, const std::string& library, const std::string& found);
/// Throws out_of_memory if the factors need more than the system allows. `library`: which says so.
void expect_room(const sparse_system& system, std::size_t bytes, const char* library);
/// What such a library has found: "3 pivots were nearly 0".
[[nodiscard]] std::string small_pivots(std::int64_t count);

/// Makes the factorization of the library for a device. Throws missing_library, device_error; argument_error if the library cannot
/// solve such a system.
[[nodiscard]] std::shared_ptr<factorization> make_factorization(const sparse_system& system, const device& on);

/// @{
/// Eigen's factorizations, for real and for complex elements. Throw missing_library if Weir was built without Eigen.
[[nodiscard]] std::shared_ptr<factorization> make_eigen_real(const sparse_system& system);
[[nodiscard]] std::shared_ptr<factorization> make_eigen_complex(const sparse_system& system);
/// @}
/// Eigen's version; empty if Weir was built without it.
[[nodiscard]] const char* eigen_version() noexcept;

}  // namespace weir::calls
