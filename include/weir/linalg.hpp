// Products of matrices. Layer: calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "weir/array.hpp"
#include "weir/calls.hpp"
#include "weir/completion.hpp"
#include "weir/explain.hpp"
#include "weir/export.hpp"
#include "weir/on.hpp"
#include "weir/scalar.hpp"
#include "weir/source_location.hpp"

namespace weir {

/// What is done to each element of a product before it is written. `bias` stands for the element of matmul_options::bias.
enum class matmul_epilog : std::uint8_t {
    none,       ///< x
    bias,       ///< x + bias
    relu,       ///< max(x, 0), and NaN for NaN; of real elements
    gelu,       ///< x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))); of real elements
    relu_bias,  ///< relu of x + bias
    gelu_bias,  ///< gelu of x + bias
};

/// How matrices are multiplied.
struct matmul_options {
    scalar alpha = 1;                                   ///< a factor of the product; if it is 0, a and b are not read
    std::optional<array> c = std::nullopt;              ///< what is added to the product; needs `beta`
    std::optional<scalar> beta = std::nullopt;          ///< the factor of c; if it is 0, c is not read
    matmul_epilog epilog = matmul_epilog::none;         ///< what is done to the sum
    std::optional<array> bias = std::nullopt;           ///< for the epilogs that add one, and for no other
    execution_target execution{};                       ///< where to compute
    call_blocking blocking = call_blocking::automatic;  ///< whether the call returns before its work is over
    weir::memory_limit memory_limit{};                  ///< what it may take besides operands and result
};

namespace detail {

WEIR_EXPORT completion matmul_into(const on& where, const array& a, const array& b, const array& out,
                                   const matmul_options& how);

}  // namespace detail

/// @{
/// The matrix product epilog(alpha a b + beta c), with the shapes of NumPy's matmul (rule P1): a is (..., m, k) or (k,), b is
/// (..., k, n) or (k,), the axes before the last two are broadcast, and the result is (..., m, n), without the axis that a vector
/// does not have. c and the bias are broadcast to the shape of the result: a bias of shape (n,) has an element for each column,
/// one of shape (m, 1) for each row.
///
/// Elements are float16, bfloat16, float32, float64, complex64 or complex128; operands of different types are converted to the
/// one to which NumPy promotes them all, which is the result's. 16-bit types are computed in float32, and rounded once at the end where
/// code of the host computes. Sums are in no particular order.
///
/// Operands may have any strides. Those that BLAS takes (along one of the last two axes elements lie one after the other, along the
/// other at any distance) are read where they are; others are packed first, in a workspace. On the CPU, and wherever code of the host
/// computes, the library is OpenBLAS or another one with the interface of CBLAS; on CUDA devices it is NVIDIA's cuBLASLt.
///
/// Reads a, b, c and the bias, writes the result; the operands are left as they are. Returns once enqueued (rule P2): operands and
/// result may be used at once, changed and dropped, on any stream. It blocks if `blocking` says so, and if it computes on a device
/// that cannot reach the operands' memory.
///
/// Throws argument_error (shapes, devices, `c` without `beta` or the reverse, a factor that elements cannot be, a bias that is
/// missing or not asked for, relu and gelu of complex elements, a stream of another device, a matrix with more rows or columns than
/// the library counts), argument_type_error (element types), state_error (closed stream), out_of_memory (also what goes beyond the
/// memory limit), and missing_library with the package to install; then nothing was enqueued. Calls that block throw operation_error
/// if the work failed.
[[nodiscard]] WEIR_EXPORT array matmul(const on& where, const array& a, const array& b, const matmul_options& how = {});
/// On the current stream of the device that computes.
[[nodiscard]] WEIR_EXPORT array matmul(const array& a, const array& b, const matmul_options& how = {},
                                       source_location where = source_location::current());
/// Into `out`, an array of the result's shape and element type on the operands' device, with any strides. It may be c, or overlap
/// any operand. Deduced, so that `{}` in its place is the options.
template <writable_array Result>
completion matmul(const on& where, const array& a, const array& b, Result&& out, const matmul_options& how = {}) {
    return detail::matmul_into(where, a, b, out, how);
}
/// @}

/// What a matmul_plan is to work with from now on: that which is given; all else stays.
struct matmul_operands {
    std::optional<array> a = std::nullopt;       ///< the first factor
    std::optional<array> b = std::nullopt;       ///< the second
    std::optional<array> c = std::nullopt;       ///< what is added
    std::optional<array> bias = std::nullopt;    ///< the epilog's
    std::optional<scalar> alpha = std::nullopt;  ///< the factor of the product
    std::optional<scalar> beta = std::nullopt;   ///< the factor of c
};

/// How matmul_plan::autotune goes about it.
struct matmul_tuning {
    int candidates = 8;   ///< algorithms that are tried at most; 1 or more
    int repetitions = 5;  ///< how often each is run; the fastest run counts; 1 or more
};

/// Options of matmul_plan::execute.
struct matmul_execution {
    /// Whether the plan gives its workspace back to the pool once the product is enqueued; the next execution takes a new one.
    bool release_workspace = false;
};

/// A product that is prepared once and executed often: the stateful form of `matmul` (rule P1).
///
/// \code
/// weir::matmul_plan p(a, b);      // holds both
/// p.plan(s1);
/// weir::array x = p.execute(s1);  // reads a and b
/// p.reset_operands({.b = c});     // c may be pending on any stream
/// weir::array y = p.execute(s2);
/// \endcode
///
/// Streams may change from call to call without ordering by the program: operands, results and the workspace that the plan keeps
/// are memory whose accesses Weir orders (rule P3). Under ordering_mode::manual the program orders operands and results; the
/// workspace, which it does not see, stays Weir's to order (rule O5).
///
/// No call blocks but `autotune`, and `execute` where `matmul` says so. The calls throw what `matmul` throws, and state_error after
/// `free`, without operands, or before `plan`. Movable; a moved-from plan is a freed one. One thread at a time, as for standard
/// containers.
class WEIR_EXPORT matmul_plan {
public:
    /// Describes the product, and keeps references to the operands. Enqueues nothing. Throws argument_error, argument_type_error.
    matmul_plan(const array& a, const array& b, const matmul_options& how = {});
    /// @{
    /// Takes over the plan; `other` is a freed one then.
    matmul_plan(matmul_plan&& other) noexcept;
    matmul_plan& operator=(matmul_plan&& other) noexcept;
    /// @}
    /// The same as free().
    ~matmul_plan();

    /// Chooses how to compute, and takes the workspace that it needs, if any, from what suits `where`. To be called before
    /// `execute`; again is harmless. Loads the library. Enqueues nothing.
    void plan(const on& where);
    /// On the current stream of the device that computes.
    void plan(source_location where = source_location::current());

    /// Tries the algorithms that the library suggests on the operands as they are at this point of the stream, into memory of its
    /// own, and keeps the fastest. Blocks until that is done. Returns how many were tried: 0 where the library has nothing to choose
    /// from, as BLAS on the CPU. What it finds holds for later products of the same kind on the device, those of `matmul` included.
    /// To be called after `plan`. Throws argument_error for fewer than one candidate or repetition.
    int autotune(const on& where, const matmul_tuning& how = {});
    /// On the current stream of the device that computes.
    int autotune(const matmul_tuning& how = {}, source_location where = source_location::current());

    /// Enqueues the product of the operands as they are at this point of the stream, and returns the result: see weir::matmul.
    [[nodiscard]] array execute(const on& where, const matmul_execution& how = {});
    /// On the current stream of the device that computes.
    [[nodiscard]] array execute(const matmul_execution& how = {}, source_location where = source_location::current());
    /// Into `out`: see weir::matmul. `out` is deduced, so that `{}` in its place means `how`.
    template <writable_array Result>
    completion execute(const on& where, Result&& out, const matmul_execution& how = {}) {
        return execute_into(where, out, how);
    }

    /// Holds other operands from now on. Throws argument_error if a shape, an element type or the device is another than at first,
    /// for a c or a bias where there was none, and for factors that `matmul` would refuse; state_error if freed, and if only some are
    /// given after `release_operands`. Then all is as it was.
    void reset_operands(const matmul_operands& operands);
    /// Drops the references to the operands, keeps the plan; pending products are not disturbed. Idempotent. Throws state_error if
    /// freed.
    void release_operands();
    /// Drops operands, plan and workspace; pending products are not disturbed. Idempotent.
    void free() noexcept;

    /// Bytes of the workspace that the plan keeps: 0 before `plan`, after it was released, and for products that need none.
    [[nodiscard]] std::size_t workspace_bytes() const noexcept;

private:
    friend explanation explain(const matmul_plan& what);
    struct state;
    completion execute_into(const on& where, const array& out, const matmul_execution& how);
    [[nodiscard]] state& expect_alive() const;

    std::unique_ptr<state> state_;
};

/// Which library does each phase, on which device, and which phases block: explanation::phases. Opens the library. Throws state_error if
/// freed.
[[nodiscard]] WEIR_EXPORT explanation explain(const matmul_plan& what);

}  // namespace weir
