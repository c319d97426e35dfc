// Discrete Fourier transforms. Layer: calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "weir/array.hpp"
#include "weir/calls.hpp"
#include "weir/completion.hpp"
#include "weir/explain.hpp"
#include "weir/export.hpp"
#include "weir/on.hpp"
#include "weir/source_location.hpp"

namespace weir {

/// Where the factor 1/n is applied, as in NumPy: at the inverse transform, its square root at both, or at the forward transform.
enum class fft_norm : std::uint8_t { backward, ortho, forward };

/// The direction in which a plan transforms.
enum class fft_direction : std::uint8_t {
    forward,  ///< X[k] = sum of x[j] exp(-2 pi i j k / n)
    inverse,  ///< the same with +
};

/// Discrete Fourier transforms along one or several axes, batched over all others; names, shapes, lengths and norms are
/// NumPy's (rule P1). Operands: float32, float64, complex64, complex128, with any strides; results have the operand's
/// precision and lie on the operand's device.
///
/// Each call reads the operand and writes the result. It returns once enqueued (rule P2): both may be used at once, changed and dropped, on
/// any stream. It blocks if `options::blocking` says so, and if it computes on a device that cannot reach the operand's memory. The operand
/// is not changed. A workspace, if one is needed, is taken from the pool and tracked like any memory (rule P3).
///
/// All throw argument_error (axes, lengths, a device other than the stream's, a result of another shape or partly over the operand),
/// argument_type_error (element types), state_error (closed stream), out_of_memory (also beyond the memory limit), and missing_library with
/// the package to install; then nothing was enqueued. Calls that block throw operation_error if the work failed.
namespace fft {

/// Options of a transform.
struct options {
    /// The length of the transform along its only axis. A longer axis of the operand is cut, a shorter one is padded with zeros. By default
    /// the length of the axis (for irfft and irfftn: 2 (length - 1) for the last one).
    std::optional<std::int64_t> n = std::nullopt;
    /// The same for several axes, in the order of `axes`, or for all axes of the operand; -1 stands for the default.
    std::vector<std::int64_t> s{};
    /// The one axis to transform; negative ones count from the end.
    std::optional<std::int64_t> axis = std::nullopt;
    /// The axes to transform, each at most once. By default the last one for fft, ifft, rfft and irfft, and all for the others and for
    /// plans. Real transforms halve the last of these axes.
    std::vector<std::int64_t> axes{};
    fft_norm norm = fft_norm::backward;                 ///< where the factor 1/n goes
    execution_target execution{};                       ///< where to compute
    call_blocking blocking = call_blocking::automatic;  ///< whether the call returns before its work is complete
    weir::memory_limit memory_limit{};                  ///< how much memory it may use besides operand and result
};

namespace detail {

enum class transform : std::uint8_t { fft, ifft, rfft, irfft, fftn, ifftn, rfftn, irfftn };
WEIR_EXPORT completion transform_into(transform which, const on& where, const array& a, const array& out,
                                      const options& how);

}  // namespace detail

/// The forward transform of complex or real elements: (..., n, ...) complex.
[[nodiscard]] WEIR_EXPORT array fft(const on& where, const array& a, const options& how = {});
/// The inverse transform of complex or real elements: (..., n, ...) complex.
[[nodiscard]] WEIR_EXPORT array ifft(const on& where, const array& a, const options& how = {});
/// The forward transform of real elements, without the mirrored half: (..., n/2 + 1, ...) complex.
[[nodiscard]] WEIR_EXPORT array rfft(const on& where, const array& a, const options& how = {});
/// The inverse of rfft: reads n/2 + 1 complex elements of the axis; the result is (..., n, ...) real. The imaginary parts of the first
/// element and, for even n, of the last one are treated as 0.
[[nodiscard]] WEIR_EXPORT array irfft(const on& where, const array& a, const options& how = {});
/// @{
/// The same over all axes, unless `axes` says otherwise. rfftn is rfft along the last of them and fft along the others; irfftn is its
/// inverse.
[[nodiscard]] WEIR_EXPORT array fftn(const on& where, const array& a, const options& how = {});
[[nodiscard]] WEIR_EXPORT array ifftn(const on& where, const array& a, const options& how = {});
[[nodiscard]] WEIR_EXPORT array rfftn(const on& where, const array& a, const options& how = {});
[[nodiscard]] WEIR_EXPORT array irfftn(const on& where, const array& a, const options& how = {});
/// @}

/// @{
/// The same into `out`, an array of the result's shape and element type on the operand's device, with any strides.
///
/// A transform may be in place, that is, over the operand. Complex transforms without a change of length: into the operand itself. Real
/// transforms: if operand and result begin at the same byte, elements along the last transformed axis are contiguous, and rows begin at
/// the same bytes (rows of 2 (n/2 + 1) real elements, of which the operand or the result has the first n). The operand's elements are
/// then changed, including the ends of its rows.
///
/// `out` is deduced, so that `{}` in its place means the options.
template <writable_array Result>
completion fft(const on& where, const array& a, Result&& out, const options& how = {}) {
    return detail::transform_into(detail::transform::fft, where, a, out, how);
}
template <writable_array Result>
completion ifft(const on& where, const array& a, Result&& out, const options& how = {}) {
    return detail::transform_into(detail::transform::ifft, where, a, out, how);
}
template <writable_array Result>
completion rfft(const on& where, const array& a, Result&& out, const options& how = {}) {
    return detail::transform_into(detail::transform::rfft, where, a, out, how);
}
template <writable_array Result>
completion irfft(const on& where, const array& a, Result&& out, const options& how = {}) {
    return detail::transform_into(detail::transform::irfft, where, a, out, how);
}
template <writable_array Result>
completion fftn(const on& where, const array& a, Result&& out, const options& how = {}) {
    return detail::transform_into(detail::transform::fftn, where, a, out, how);
}
template <writable_array Result>
completion ifftn(const on& where, const array& a, Result&& out, const options& how = {}) {
    return detail::transform_into(detail::transform::ifftn, where, a, out, how);
}
template <writable_array Result>
completion rfftn(const on& where, const array& a, Result&& out, const options& how = {}) {
    return detail::transform_into(detail::transform::rfftn, where, a, out, how);
}
template <writable_array Result>
completion irfftn(const on& where, const array& a, Result&& out, const options& how = {}) {
    return detail::transform_into(detail::transform::irfftn, where, a, out, how);
}
/// @}

/// @{
/// The same on the current stream of the device that computes.
[[nodiscard]] WEIR_EXPORT array fft(const array& a, const options& how = {},
                                    source_location where = source_location::current());
[[nodiscard]] WEIR_EXPORT array ifft(const array& a, const options& how = {},
                                     source_location where = source_location::current());
[[nodiscard]] WEIR_EXPORT array rfft(const array& a, const options& how = {},
                                     source_location where = source_location::current());
[[nodiscard]] WEIR_EXPORT array irfft(const array& a, const options& how = {},
                                      source_location where = source_location::current());
[[nodiscard]] WEIR_EXPORT array fftn(const array& a, const options& how = {},
                                     source_location where = source_location::current());
[[nodiscard]] WEIR_EXPORT array ifftn(const array& a, const options& how = {},
                                      source_location where = source_location::current());
[[nodiscard]] WEIR_EXPORT array rfftn(const array& a, const options& how = {},
                                      source_location where = source_location::current());
[[nodiscard]] WEIR_EXPORT array irfftn(const array& a, const options& how = {},
                                       source_location where = source_location::current());
/// @}

}  // namespace fft

/// The transforms of an fft_plan.
enum class fft_kind : std::uint8_t {
    complex_to_complex,  ///< fftn and ifftn, of a complex operand
    real_to_complex,     ///< rfftn, of a real operand
    complex_to_real,     ///< irfftn, of a complex operand
};

/// Options of fft_plan::execute.
struct fft_execution {
    /// Whether the plan gives its workspace back to the pool once the transform is enqueued; the next execution takes a new one.
    bool release_workspace = false;
};

/// A transform that is prepared once and executed often: the stateful form of `fft` (rule P1). Over all axes of the operand, unless the
/// options name axes.
///
/// \code
/// weir::fft_plan f(a);          // holds a
/// f.plan(s1);
/// weir::array b = f.execute(s1, weir::fft_direction::forward);
/// f.reset_operand(c);           // c may be pending on any stream
/// weir::array d = f.execute(s2, weir::fft_direction::forward);
/// f.release_operand();          // c may be gone before the transform has run
/// \endcode
///
/// The stream may be another one at each call, without any ordering by the program: the operand, the result and the workspace that the plan
/// keeps are memory, whose accesses Weir orders (rule P3). Under ordering_mode::manual the program orders operands and results. Weir still
/// orders the workspace, which the program does not see (rule O5).
///
/// Only `execute` blocks, and only as namespace fft says; on CUDA devices `plan` may wait for work of the device, because cuFFT loads
/// kernels there. Movable; a moved-from plan is a freed one. One thread at a time, as for standard containers.
class WEIR_EXPORT fft_plan {
public:
    /// Describes the transform and keeps a reference to the operand. By default, real operands get real_to_complex and complex ones
    /// complex_to_complex. Enqueues nothing. Throws argument_error, argument_type_error.
    explicit fft_plan(const array& operand, const fft::options& how = {}, std::optional<fft_kind> kind = std::nullopt);
    /// @{
    /// Takes over the plan; `other` is then a freed one.
    fft_plan(fft_plan&& other) noexcept;
    fft_plan& operator=(fft_plan&& other) noexcept;
    /// @}
    /// The same as free().
    ~fft_plan();

    /// Prepares the transform and takes the workspace that it needs, if any; memory that the stream of `where` can use without a wait comes
    /// first. Must be called before `execute`; calling it again is harmless. Enqueues nothing. Throws state_error (freed, no operand),
    /// argument_error (a stream of another device), missing_library, out_of_memory (also beyond the memory limit).
    void plan(const on& where);
    /// The same on the current stream of the device that computes.
    void plan(source_location where = source_location::current());

    /// Enqueues the transform of the operand as it is at this point of the stream, and returns the result: see namespace fft. Throws
    /// state_error if not planned, released or freed; argument_error for a direction that the kind does not have, or a stream of another
    /// device.
    [[nodiscard]] array execute(const on& where, fft_direction direction = fft_direction::forward,
                                const fft_execution& how = {});
    /// The same on the current stream of the device that computes.
    [[nodiscard]] array execute(fft_direction direction = fft_direction::forward, const fft_execution& how = {},
                                source_location where = source_location::current());
    /// The same into `out`: see namespace fft. `out` is deduced, so that `{}` in its place means `how`.
    template <writable_array Result>
    completion execute(const on& where, fft_direction direction, Result&& out, const fft_execution& how = {}) {
        return execute_into(where, direction, out, how);
    }

    /// Replaces the operand. Throws argument_error if the new one has another shape, element type or device; state_error if freed.
    void reset_operand(const array& operand);
    /// Drops the reference to the operand and keeps the plan; does not affect pending transforms. Idempotent. Throws state_error if freed.
    void release_operand();
    /// Drops operand, plan and workspace; does not affect pending transforms. Idempotent.
    void free() noexcept;

    /// Bytes of the workspace that the plan keeps: 0 before `plan`, after it was released, and for most transforms.
    [[nodiscard]] std::size_t workspace_bytes() const noexcept;

private:
    friend explanation explain(const fft_plan& what);
    struct state;
    completion execute_into(const on& where, fft_direction direction, const array& out, const fft_execution& how);
    [[nodiscard]] state& expect_alive() const;

    std::unique_ptr<state> state_;
};

/// Which library does each phase, on which device, and which phases block: explanation::phases. Opens the library. Throws state_error if
/// freed.
[[nodiscard]] WEIR_EXPORT explanation explain(const fft_plan& what);

}  // namespace weir
