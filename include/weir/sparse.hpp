// Sparse systems of linear equations, solved directly. Layer: calls.
#pragma once

#include <cstdint>
#include <memory>

#include "weir/array.hpp"
#include "weir/calls.hpp"
#include "weir/completion.hpp"
#include "weir/explain.hpp"
#include "weir/export.hpp"
#include "weir/on.hpp"
#include "weir/shape.hpp"
#include "weir/source_location.hpp"

namespace weir {

/// A square sparse matrix in compressed sparse rows. It refers to its arrays as a copy of an array does.
///
/// The elements of row i are values[k] in the columns column_indices[k], for k from row_offsets[i] up to
/// row_offsets[i + 1] - 1. Within a row the column indices increase from one element to the next: no column occurs twice.
/// Indices count from 0. An element that is not stored is 0.
struct csr_matrix {
    array row_offsets;        ///< (n + 1,) int32 or int64
    array column_indices;     ///< (nonzeros,), of the same type
    array values;             ///< (nonzeros,) float32, float64, complex64 or complex128
    weir::shape shape{0, 0};  ///< (n, n)
};

/// What is known of a matrix. A factorization that uses it is faster and needs less memory.
enum class matrix_kind : std::uint8_t {
    general,            ///< nothing
    symmetric,          ///< A[i, j] = A[j, i], for complex elements too
    hermitian,          ///< A[i, j] = conj(A[j, i])
    positive_definite,  ///< hermitian (symmetric, if real), and all eigenvalues are positive
};

/// Which elements of a matrix that is not `general` are read. The other elements may be stored or not.
enum class matrix_triangle : std::uint8_t {
    full,   ///< all: both triangles are stored
    lower,  ///< those on and below the diagonal
    upper,  ///< those on and above the diagonal
};

/// Options for solving a system.
struct solve_options {
    matrix_kind kind = matrix_kind::general;            ///< what is known of the matrix
    matrix_triangle triangle = matrix_triangle::full;   ///< what is read of it; `full` for a general matrix
    execution_target execution{};                       ///< where to compute
    call_blocking blocking = call_blocking::automatic;  ///< whether each call returns before its work is complete
    /// The most memory of the computing device for the factors, and for copies of the operands if they are on another device. A
    /// factorization that needs more fails before it begins where the library tells what it needs (docs/sparse.md, "Memory").
    weir::memory_limit memory_limit{};
};

namespace detail {

WEIR_EXPORT completion solve_into(const on& where, const csr_matrix& a, const array& b, const array& x,
                                  const solve_options& how);

}  // namespace detail

/// @{
/// Solves A x = b and returns x, which has the shape, the element type and the device of b: (n,), or (n, k) for k right-hand sides (rule
/// P1). b may have any strides, and has the element type of the matrix. On the CPU, and wherever code of the host computes, the library is
/// Eigen, or MKL's PARDISO if WEIR_PARDISO_LIBRARY names it; on CUDA devices it is NVIDIA's cuDSS, or else cuSOLVER. docs/sparse.md says
/// what each supports.
///
/// Reads the arrays of `a` and b, writes x; does not change the operands. Returns once enqueued (rule P2): operands and result may be used
/// at once, changed and dropped, on any stream. It blocks if `solve_options::blocking` says so, and if it computes on a device that cannot
/// reach the operands' memory.
///
/// Throws argument_error (shapes, devices, a stream of another device), argument_type_error (element types), state_error (closed stream),
/// out_of_memory, and missing_library with the package to install; then no solution was enqueued. Some errors are found only when the
/// work runs: a singular matrix, a `positive_definite` matrix that is not, and indices that are not as csr_matrix says. Then the
/// operation fails, and an operation or a host view that reads x reports operation_error (rule K4). A call that blocks throws
/// argument_error for such indices, and operation_error for the other failures.
///
/// A matrix that rounding alone makes differ from a singular one is refused as singular. If it is close to one otherwise, a solution may be
/// inexact without an error: no condition number is estimated.
[[nodiscard]] WEIR_EXPORT array solve(const on& where, const csr_matrix& a, const array& b,
                                      const solve_options& how = {});
/// The same on the current stream of the device that computes.
[[nodiscard]] WEIR_EXPORT array solve(const csr_matrix& a, const array& b, const solve_options& how = {},
                                      source_location where = source_location::current());
/// The same into `x`, an array of the shape, element type and device of b, with any strides. It may be b itself. `x` is deduced, so that
/// `{}` in its place means the options.
template <writable_array Result>
completion solve(const on& where, const csr_matrix& a, const array& b, Result&& x, const solve_options& how = {}) {
    return detail::solve_into(where, a, b, x, how);
}
/// @}

/// A system that is analyzed once, factorized for each set of values, and solved for many right-hand sides: the stateful form of `solve`
/// (rule P1).
///
/// \code
/// weir::direct_solver s(a, b);       // holds both
/// s.plan(s1);                        // reads where the elements of a are
/// s.factorize(s1);                   // reads the values of a
/// weir::array x = s.solve(s2);       // reads b
/// s.reset_operands(c);               // another right-hand side
/// weir::array y = s.solve(s2);
/// \endcode
///
/// The stream may be another one for each phase, without any ordering by the program: operands and results are memory whose accesses Weir
/// orders, and so are analysis and factorization (rule P3). Under ordering_mode::manual the program orders operands and results. Weir still
/// orders the phases among themselves, because the program does not see their memory (rule O5).
///
/// Each phase is work of the stream, and returns once enqueued; it blocks where `solve` says so. On CUDA devices all
/// phases are host tasks, which wait for the library on a thread of their own; their failures are found as on the CPU.
///
/// The phases throw what `solve` throws. They throw state_error after `free`, without the operand that they read, or before the phase that
/// must come first. Movable; a moved-from solver is a freed one. One thread at a time, as for standard containers.
class WEIR_EXPORT direct_solver {
public:
    /// Describes the system, and keeps references to the operands. Enqueues nothing. Throws argument_error (shapes, devices, a triangle
    /// of a general matrix), argument_type_error.
    direct_solver(const csr_matrix& a, const array& b, const solve_options& how = {});
    /// @{
    /// Takes over the solver; `other` is then a freed one.
    direct_solver(direct_solver&& other) noexcept;
    direct_solver& operator=(direct_solver&& other) noexcept;
    /// @}
    /// The same as free().
    ~direct_solver();

    /// Analyzes the places of the matrix's elements: reads its row offsets and column indices, and not its values. Must be called before
    /// `factorize`, and again for a matrix with elements at other places. Loads the library. Returns the completion of the analysis.
    completion plan(const on& where);
    /// The same on the current stream of the device that computes.
    completion plan(source_location where = source_location::current());

    /// Factorizes the matrix with the values as they are at this point of the stream: reads only the values (see reset_operands). Must be
    /// called before `solve`, and again when the values have changed. Returns the completion of the factorization: it fails if the matrix is
    /// singular, and a later factorization with other values mends that.
    completion factorize(const on& where);
    /// The same on the current stream of the device that computes.
    completion factorize(source_location where = source_location::current());

    /// Solves for the right-hand side as it is at this point of the stream, and returns the result: see weir::solve. Reads b.
    [[nodiscard]] array solve(const on& where);
    /// The same on the current stream of the device that computes.
    [[nodiscard]] array solve(source_location where = source_location::current());
    /// The same into `x`: see weir::solve.
    template <writable_array Result>
    completion solve(const on& where, Result&& x) {
        return solve_into(where, x);
    }

    /// @{
    /// Replaces the matrix, the right-hand side or both. A matrix must have the shape, the types and the device of the first one. With
    /// elements at the same places it needs `factorize`; at other places, or with another number of them, it needs `plan` first. If its
    /// indices are in other arrays than before, `factorize` reads them too and compares: elements at other places make it fail. A
    /// right-hand side may have another number of columns. Throws argument_error, argument_type_error; state_error if freed.
    void reset_operands(const csr_matrix& a, const array& b);
    void reset_operands(const csr_matrix& a);
    void reset_operands(const array& b);
    /// @}
    /// Drops the references to the operands; keeps analysis and factorization; does not affect pending work. Idempotent. Throws state_error
    /// if freed.
    void release_operands();
    /// Drops operands, analysis and factorization; does not affect pending work. Idempotent.
    void free() noexcept;

private:
    friend explanation explain(const direct_solver& what);
    struct state;
    completion solve_into(const on& where, const array& x);
    [[nodiscard]] state& expect_alive() const;

    std::unique_ptr<state> state_;
};

/// Which library does each phase, on which device, and which phases block: explanation::phases. Opens the library. Throws state_error if
/// freed.
[[nodiscard]] WEIR_EXPORT explanation explain(const direct_solver& what);

}  // namespace weir
