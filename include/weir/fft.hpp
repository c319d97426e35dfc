// Discrete Fourier transforms. Layer: calls.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "weir/array.hpp"
#include "weir/calls.hpp"
#include "weir/completion.hpp"
#include "weir/export.hpp"
#include "weir/launch.hpp"
#include "weir/source_location.hpp"
#include "weir/stream.hpp"

namespace weir {

/// Where the factor 1/n goes, as in NumPy: with the inverse transform, its square root with both, with the forward one.
enum class fft_norm : std::uint8_t { backward, ortho, forward };

/// Which way a plan transforms.
enum class fft_direction : std::uint8_t {
    forward,  ///< X[k] = sum of x[j] exp(-2 pi i j k / n)
    inverse,  ///< the same with +
};

/// Discrete Fourier transforms along one or several axes, batched over all others; names, shapes, lengths and norms are
/// NumPy's (rule P1). Operands: float32, float64, complex64, complex128, with any strides; results have the operand's
/// precision and lie on the operand's device.
///
/// Each call reads the operand and writes the result. It returns once enqueued (rule P2): both may be used at once,
/// changed and dropped, on any stream. It blocks if `options::blocking` says so, and if it computes on a device that
/// cannot reach the operand's memory. The operand is left as it is. A workspace, where one is needed, is taken from the
/// pool and tracked like any memory (rule P3).
///
/// All throw argument_error (axes, lengths, a device other than the stream's, a result of another shape or partly over
/// the operand), argument_type_error (element types), state_error (closed stream), out_of_memory (also what goes beyond
/// the memory limit), and missing_library with the package to install; then nothing was enqueued. Calls that block throw
/// operation_error if the work failed.
namespace fft {

/// How a transform is made.
struct options {
    /// The length of the transform along its only axis. A longer axis of the operand is cut, a shorter one filled up
    /// with zeros; the length of the axis by default (for irfft and irfftn: 2 (length - 1) for the last one).
    std::optional<std::int64_t> n = std::nullopt;
    /// The same for several axes, in the order of `axes`, or of all axes of the operand; -1 stands for the default.
    std::vector<std::int64_t> s{};
    /// The one axis to transform; negative ones count from the end.
    std::optional<std::int64_t> axis = std::nullopt;
    /// The axes to transform, each at most once. By default the last one for fft, ifft, rfft and irfft, and all for the
    /// others and for plans. Real transforms halve the last one of them.
    std::vector<std::int64_t> axes{};
    fft_norm norm = fft_norm::backward;                 ///< where the factor 1/n goes
    execution_target execution{};                       ///< where to compute
    call_blocking blocking = call_blocking::automatic;  ///< whether the call returns before its work is over
    weir::memory_limit memory_limit{};                  ///< what it may take besides operand and result
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
/// The forward transform of real elements, without the half that mirrors: (..., n/2 + 1, ...) complex.
[[nodiscard]] WEIR_EXPORT array rfft(const on& where, const array& a, const options& how = {});
/// The inverse of rfft: n/2 + 1 complex elements of the axis are read, the result is (..., n, ...) real. The imaginary
/// parts of the first element and, for even n, of the last one are taken to be 0.
[[nodiscard]] WEIR_EXPORT array irfft(const on& where, const array& a, const options& how = {});
/// @{
/// The same over all axes unless `axes` says otherwise. rfftn is rfft along the last of them and fft along the others;
/// irfftn undoes it.
[[nodiscard]] WEIR_EXPORT array fftn(const on& where, const array& a, const options& how = {});
[[nodiscard]] WEIR_EXPORT array ifftn(const on& where, const array& a, const options& how = {});
[[nodiscard]] WEIR_EXPORT array rfftn(const on& where, const array& a, const options& how = {});
[[nodiscard]] WEIR_EXPORT array irfftn(const on& where, const array& a, const options& how = {});
/// @}

/// @{
/// The same into `out`, an array of the result's shape and element type on the operand's device, with any strides.
///
/// In place, that is, over the operand: complex transforms without a change of length into the operand itself; real ones
/// where both begin at the same byte, elements along the last transformed axis lie one after the other, and rows begin
/// at the same bytes (rows of 2 (n/2 + 1) real elements, of which the operand or the result has the first n). The
/// operand's elements are changed then, in its rows' ends as well.
///
/// `out` is deduced, so that `{}` in its place is the options.
template <std::same_as<array> Result>
completion fft(const on& where, const array& a, const Result& out, const options& how = {}) {
    return detail::transform_into(detail::transform::fft, where, a, out, how);
}
template <std::same_as<array> Result>
completion ifft(const on& where, const array& a, const Result& out, const options& how = {}) {
    return detail::transform_into(detail::transform::ifft, where, a, out, how);
}
template <std::same_as<array> Result>
completion rfft(const on& where, const array& a, const Result& out, const options& how = {}) {
    return detail::transform_into(detail::transform::rfft, where, a, out, how);
}
template <std::same_as<array> Result>
completion irfft(const on& where, const array& a, const Result& out, const options& how = {}) {
    return detail::transform_into(detail::transform::irfft, where, a, out, how);
}
template <std::same_as<array> Result>
completion fftn(const on& where, const array& a, const Result& out, const options& how = {}) {
    return detail::transform_into(detail::transform::fftn, where, a, out, how);
}
template <std::same_as<array> Result>
completion ifftn(const on& where, const array& a, const Result& out, const options& how = {}) {
    return detail::transform_into(detail::transform::ifftn, where, a, out, how);
}
template <std::same_as<array> Result>
completion rfftn(const on& where, const array& a, const Result& out, const options& how = {}) {
    return detail::transform_into(detail::transform::rfftn, where, a, out, how);
}
template <std::same_as<array> Result>
completion irfftn(const on& where, const array& a, const Result& out, const options& how = {}) {
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

/// Which transforms an fft_plan makes.
enum class fft_kind : std::uint8_t {
    complex_to_complex,  ///< fftn and ifftn, of a complex operand
    real_to_complex,     ///< rfftn, of a real operand
    complex_to_real,     ///< irfftn, of a complex operand
};

/// How fft_plan::execute goes about it.
struct fft_execution {
    /// Whether the plan gives its workspace back to the pool once the transform is enqueued; the next execution takes
    /// another.
    bool release_workspace = false;
};

/// A transform that is prepared once and executed often: the stateful form of `fft` (rule P1). Over all axes of the
/// operand, unless the options name some.
///
/// \code
/// weir::fft_plan f(a);          // holds a
/// f.plan(s1);
/// weir::array b = f.execute(weir::fft_direction::forward, s1);
/// f.reset_operand(c);           // c may be pending on any stream
/// weir::array d = f.execute(weir::fft_direction::forward, s2);
/// f.release_operand();          // c may be gone before the transform has run
/// \endcode
///
/// Streams may change from call to call without a word: the operand, the result and the workspace that the plan keeps
/// are memory, whose accesses Weir orders (rule P3). Under ordering_mode::manual the program orders operands and results; the
/// workspace, which it does not see, stays Weir's to order (rule O5).
///
/// No call blocks but `execute` where namespace fft says so; on CUDA devices `plan` may wait for what the device is doing,
/// since cuFFT loads kernels there. Movable; a moved-from plan is a freed one. One thread at a
/// time, as for standard containers.
class WEIR_EXPORT fft_plan {
public:
    /// Describes the transform and keeps a reference to the operand. By default, real operands get real_to_complex and
    /// complex ones complex_to_complex. Nothing is enqueued. Throws argument_error, argument_type_error.
    explicit fft_plan(const array& operand, const fft::options& how = {}, std::optional<fft_kind> kind = std::nullopt);
    /// @{
    /// Takes over the plan; `other` is a freed one then.
    fft_plan(fft_plan&& other) noexcept;
    fft_plan& operator=(fft_plan&& other) noexcept;
    /// @}
    /// The same as free().
    ~fft_plan();

    /// Prepares the transform and takes the workspace that it needs, if any, from what suits `where`. To be called before
    /// `execute`; again is harmless. Enqueues nothing. Throws state_error (freed, no operand), argument_error (a stream
    /// of another device), missing_library, out_of_memory (also what goes beyond the memory limit).
    void plan(const on& where);
    /// On the current stream of the device that computes.
    void plan(source_location where = source_location::current());

    /// Enqueues the transform of the operand as it is at this point of the stream, and returns the result: see namespace
    /// fft. Throws state_error if not planned, released or freed; argument_error for a direction that the kind does not
    /// have, or a stream of another device.
    [[nodiscard]] array execute(fft_direction direction, const on& where, const fft_execution& how = {});
    /// On the current stream of the device that computes.
    [[nodiscard]] array execute(fft_direction direction = fft_direction::forward, const fft_execution& how = {},
                                source_location where = source_location::current());
    /// Into `out`: see namespace fft. Deduced, so that `{}` in its place is `how`.
    template <std::same_as<array> Result>
    completion execute(fft_direction direction, const on& where, const Result& out, const fft_execution& how = {}) {
        return execute_into(direction, where, out, how);
    }

    /// Holds another operand from now on. Throws argument_error if its shape, element type or device is another;
    /// state_error if freed.
    void reset_operand(const array& operand);
    /// Drops the reference to the operand, keeps the plan; pending transforms are not disturbed. Idempotent. Throws
    /// state_error if freed.
    void release_operand();
    /// Drops operand, plan and workspace; pending transforms are not disturbed. Idempotent.
    void free() noexcept;

    /// Bytes of the workspace that the plan keeps: 0 before `plan`, after it was released, and for most transforms.
    [[nodiscard]] std::size_t workspace_bytes() const noexcept;

private:
    struct state;
    completion execute_into(fft_direction direction, const on& where, const array& out, const fft_execution& how);
    [[nodiscard]] state& expect_alive() const;
    [[nodiscard]] state& expect_operand(const char* before) const;

    std::unique_ptr<state> state_;
};

}  // namespace weir
