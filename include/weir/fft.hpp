// Discrete Fourier transforms. Layer: calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "weir/array.hpp"
#include "weir/completion.hpp"
#include "weir/export.hpp"
#include "weir/launch.hpp"
#include "weir/source_location.hpp"
#include "weir/stream.hpp"

namespace weir {

/// Where the factor 1/n goes, as in NumPy: with the inverse transform, its square root with both, with the forward one.
enum class fft_norm : std::uint8_t { backward, ortho, forward };

enum class fft_direction : std::uint8_t {
    forward,  ///< X[k] = sum of x[j] exp(-2 pi i j k / n)
    inverse,  ///< the same with +
};

/// One-dimensional discrete Fourier transforms along the last axis, batched over all others; names, shapes and norms are
/// NumPy's (rule P1). Operands: float32, float64, complex64, complex128; results have the operand's precision.
///
/// Each call enqueues one operation, which reads the operand and writes the result, and returns (rule P2): it does not
/// block, and both may be used at once, changed and dropped, on any stream. The operand is left as it is.
///
/// All throw argument_error (no axis, n < 1, a device other than the stream's, a result of another shape or partly over
/// the operand), argument_type_error (element types), state_error (closed stream), out_of_memory, and missing_library
/// with the package to install; then nothing was enqueued.
namespace fft {

struct options {
    /// The length of the transform. A longer last axis of the operand is cut, a shorter one filled up with zeros; the
    /// length of the axis by default (for irfft: 2 (length - 1)).
    std::optional<std::int64_t> n = std::nullopt;
    fft_norm norm = fft_norm::backward;
};

/// The forward transform of complex or real elements: (..., n) complex.
[[nodiscard]] WEIR_EXPORT array fft(const on& where, const array& a, const options& how = {});
/// The inverse transform of complex or real elements: (..., n) complex.
[[nodiscard]] WEIR_EXPORT array ifft(const on& where, const array& a, const options& how = {});
/// The forward transform of real elements, without the half that mirrors: (..., n/2 + 1) complex.
[[nodiscard]] WEIR_EXPORT array rfft(const on& where, const array& a, const options& how = {});
/// The inverse of rfft: n/2 + 1 complex elements of the last axis are read, the result is (..., n) real. The imaginary
/// parts of the first element and, for even n, of the last one are taken to be 0.
[[nodiscard]] WEIR_EXPORT array irfft(const on& where, const array& a, const options& how = {});

/// The same into `out`, an array of the result's shape and element type; for fft and ifft without a change of length it
/// may be the operand itself.
WEIR_EXPORT completion fft(const on& where, const array& a, const array& out, const options& how = {});
WEIR_EXPORT completion ifft(const on& where, const array& a, const array& out, const options& how = {});
WEIR_EXPORT completion rfft(const on& where, const array& a, const array& out, const options& how = {});
WEIR_EXPORT completion irfft(const on& where, const array& a, const array& out, const options& how = {});

/// The same on the current stream of the operand's device.
[[nodiscard]] WEIR_EXPORT array fft(const array& a, const options& how = {},
                                    source_location where = source_location::current());
[[nodiscard]] WEIR_EXPORT array ifft(const array& a, const options& how = {},
                                     source_location where = source_location::current());
[[nodiscard]] WEIR_EXPORT array rfft(const array& a, const options& how = {},
                                     source_location where = source_location::current());
[[nodiscard]] WEIR_EXPORT array irfft(const array& a, const options& how = {},
                                      source_location where = source_location::current());

}  // namespace fft

/// Which transforms an fft_plan makes.
enum class fft_kind : std::uint8_t {
    complex_to_complex,  ///< fft and ifft, of a complex operand
    real_to_complex,     ///< rfft, of a real operand
    complex_to_real,     ///< irfft, of a complex operand
};

/// A transform that is prepared once and executed often: the stateful form of `fft` (rule P1).
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
/// are memory, whose accesses Weir orders (rule P3). Under ordering_mode::manual, executions of one plan on several
/// streams are the program's to order.
///
/// No call blocks. Movable; a moved-from plan is a freed one. One thread at a time, as for standard containers.
class WEIR_EXPORT fft_plan {
public:
    /// Describes the transform and keeps a reference to the operand. By default, real operands get real_to_complex and
    /// complex ones complex_to_complex. Nothing is enqueued. Throws argument_error, argument_type_error.
    explicit fft_plan(const array& operand, const fft::options& how = {}, std::optional<fft_kind> kind = std::nullopt);
    fft_plan(fft_plan&& other) noexcept;
    fft_plan& operator=(fft_plan&& other) noexcept;
    /// The same as free().
    ~fft_plan();

    /// Prepares the transform and takes the workspace that it needs, if any, from what suits `where`. To be called before
    /// `execute`; again is harmless. Enqueues nothing. Throws state_error (freed), missing_library, out_of_memory.
    void plan(const on& where);
    void plan(source_location where = source_location::current());

    /// Enqueues the transform of the operand as it is at this point of the stream, and returns the result: see namespace
    /// fft. Throws state_error if not planned, released or freed; argument_error for a direction that the kind does not
    /// have, or a stream of another device.
    [[nodiscard]] array execute(fft_direction direction, const on& where);
    [[nodiscard]] array execute(fft_direction direction = fft_direction::forward,
                                source_location where = source_location::current());
    /// The same into `out`.
    completion execute(fft_direction direction, const on& where, const array& out);

    /// Holds another operand from now on. Throws argument_error if its shape or element type is another; state_error if
    /// freed.
    void reset_operand(const array& operand);
    /// Drops the reference to the operand, keeps the plan; pending transforms are not disturbed. Idempotent. Throws
    /// state_error if freed.
    void release_operand();
    /// Drops operand, plan and workspace; pending transforms are not disturbed. Idempotent.
    void free() noexcept;

    /// Bytes of the workspace that the plan keeps: 0 before `plan` and for most transforms.
    [[nodiscard]] std::size_t workspace_bytes() const noexcept;

private:
    struct state;
    [[nodiscard]] state& expect_alive() const;
    [[nodiscard]] state& expect_ready() const;

    std::unique_ptr<state> state_;
};

}  // namespace weir
