#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "calls/cufft_library.hpp"
#include "calls/fft_provider.hpp"

namespace weir::calls {

/// How the elements of one side of a plan lie, as cuFFT's "advanced data layout" has it: element (x, y, z) of transform b is
/// at b * distance + ((x * embed[1] + y) * embed[2] + z) * stride. Counted in elements of that side.
struct cufft_side {
    std::array<std::int64_t, 3> embed{1, 1, 1};
    std::int64_t stride = 1;
    std::int64_t distance = 1;

    friend auto operator<=>(const cufft_side&, const cufft_side&) = default;  // NOLINT(modernize-use-nullptr): LLVM 14
};

/// All that a plan of cuFFT is made for.
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

/// Elements whose imaginary parts the transform has to find 0.
struct real_elements {
    fft_dimensions where;  ///< by `in_stride`, in complex elements of the operand's side
};

/// A problem as cuFFT can do it.
///
/// A plan has up to three axes and one batch. Axes beyond that, and axes whose strides are no multiples of each other, are
/// transformed by further parts; batches beyond one by several executions. From half a spectrum, the axes but the last are
/// transformed in place, and the real transform of the last axis alone comes last, once the imaginary parts that numpy takes
/// no notice of are 0: what cuFFT does with them is not documented.
struct cufft_parts {
    std::vector<cufft_part> before;       ///< on the operand
    std::optional<real_elements> zeroed;  ///< between the two
    std::vector<cufft_part> after;

    /// How many executions that is.
    [[nodiscard]] std::int64_t executions() const noexcept;
};

/// None if the layout is beyond cuFFT (strides that are not positive along an axis, real elements that do not begin where a
/// complex one could, an operand to be preserved that cuFFT may destroy), or takes more than `most` executions.
[[nodiscard]] std::optional<cufft_parts> cufft_parts_of(const fft_problem& problem, std::int64_t most);

}  // namespace weir::calls
