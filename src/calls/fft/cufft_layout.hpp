#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "calls/fft/cufft_library.hpp"
#include "calls/fft/provider.hpp"

namespace weir::calls {

/// The layout of one side of a plan in cuFFT's "advanced data layout": element (x, y, z) of transform b is
/// at b * distance + ((x * embed[1] + y) * embed[2] + z) * stride, counted in elements of that side.
struct cufft_side {
    std::array<std::int64_t, 3> embed{1, 1, 1};
    std::int64_t stride = 1;
    std::int64_t distance = 1;

    friend auto operator<=>(const cufft_side&, const cufft_side&) = default;  // NOLINT(modernize-use-nullptr): LLVM 14
};

/// The complete parameters of a cuFFT plan.
struct cufft_layout {
    cufft_type type = cufft_type::z2z;
    int rank = 1;
    std::array<std::int64_t, 3> n{1, 1, 1};  ///< outermost first; real transforms halve the last one
    cufft_side in;
    cufft_side out;
    std::int64_t batch = 1;

    friend auto operator<=>(const cufft_layout&,
                            const cufft_layout&) = default;  // NOLINT(modernize-use-nullptr): LLVM 14
};

/// One of the transforms that make up a problem: a plan, executed once for each index of `executions`.
struct cufft_part {
    enum class way : std::uint8_t { in_to_out, in_to_in, out_to_out };

    cufft_layout layout;
    int direction = cufft_forward;
    way from_to = way::in_to_out;
    fft_dimensions executions;
};

/// Elements whose imaginary parts must be 0 for the transform.
struct real_elements {
    fft_dimensions where;  ///< by `in_stride`, in complex elements of the operand's side
};

/// A problem in the form in which cuFFT can compute it.
///
/// A plan has up to three axes and one batch. Further axes, and axes whose strides are no multiples of each other, are
/// transformed by further parts; further batches by several executions. For half a spectrum, the axes except the last are
/// transformed in place. The real transform of the last axis alone comes last, once the imaginary parts that numpy ignores are
/// set to 0: what cuFFT does with them is not documented.
struct cufft_parts {
    std::vector<cufft_part> before;       ///< on the operand
    std::optional<real_elements> zeroed;  ///< set to 0 between `before` and the other parts
    std::vector<cufft_part> after;

    /// The total number of executions.
    [[nodiscard]] std::int64_t executions() const noexcept;
};

/// None if cuFFT cannot handle the layout (strides that are not positive along an axis, real elements that do not begin at an address
/// for complex ones, an operand to be preserved that cuFFT may destroy), or if it needs more than `most` executions.
[[nodiscard]] std::optional<cufft_parts> cufft_parts_of(const fft_problem& problem, std::int64_t most);

}  // namespace weir::calls
