#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "calls/call.hpp"
#include "calls/fft/geometry.hpp"
#include "calls/fft/numbers.hpp"
#include "calls/fft/provider.hpp"

namespace weir::calls {

/// The steps of one transform, in this order: fill, transform, scale, scatter.
struct fft_steps {
    const std::byte* operand = nullptr;
    std::byte* filled = nullptr;  ///< where the operand is copied to first, if `is_filled`
    bool is_filled = false;
    filling fill;
    fft_problem problem;
    const std::byte* in = nullptr;  ///< the addresses that the problem reads and writes
    std::byte* out = nullptr;
    std::byte* target = nullptr;
    scaling scale;
    std::byte* result = nullptr;
    std::unique_ptr<const filling> scatter;  ///< from the target to the result, if they differ
};

/// The demands of a library on its problems; by default none, as for FFTW.
struct fft_demands {
    /// Whether the library can compute a problem. Null: it can compute any.
    bool (*takes)(const fft_problem&) = nullptr;

    /// The alignment that both sides must have to be `aligned`.
    [[nodiscard]] std::size_t alignment(bool double_precision) const noexcept {
        return takes == nullptr ? fft_alignment : 2 * (double_precision ? sizeof(double) : sizeof(float));
    }
};

/// The route from one operand to one result of any layouts.
///
/// Libraries read and write with any strides. Sometimes the operand is not what the transform reads: it is to be filled up
/// with zeros, it is real although the transform is complex, or it must not be changed and the library would change it. Then it
/// is first copied: into the result, which is then transformed in place, or, if the layout of the result does not allow that,
/// to a workspace. A result that runs backwards along a transformed axis is made in a workspace:
/// FFTW 3.3.10 does not finish planning some of these. If a library does not accept a problem, one side or both use a packed
/// copy, with the transformed axes innermost.
class fft_route {
public:
    /// Throws argument_error if operand and result overlap in a way that does not allow the transform.
    fft_route(const fft_geometry& what, fft_direction direction, const call_layout& layout,
              const fft_demands& library = {});

    /// The size of the workspace; 0 if none is needed.
    [[nodiscard]] std::size_t workspace_bytes() const noexcept;

    /// The library's problem, for any addresses of the operand, the result and the workspace.
    [[nodiscard]] fft_problem problem() const { return pose().problem; }
    /// The steps, with a workspace of `workspace_bytes` or more.
    [[nodiscard]] fft_steps steps(std::byte* workspace) const;

private:
    enum class path : std::uint8_t { direct, in_place, by_result, by_workspace };

    /// A problem, and the offsets in bytes from the start of each side to where the library begins.
    struct posed_problem {
        fft_problem problem;
        std::int64_t in_offset = 0;
        std::int64_t out_offset = 0;
    };

    [[nodiscard]] bool runs_backwards() const noexcept;
    [[nodiscard]] path choose() const;
    [[nodiscard]] bool has_room() const noexcept;
    [[nodiscard]] bool is_taken() const;
    void suit_library();
    void set_scattered(bool scattered);
    [[nodiscard]] per_dimension packed(const per_dimension& extents, dtype type) const;
    [[nodiscard]] bool is_aligned(const std::byte* memory) const noexcept;
    [[nodiscard]] bool fits_in_place() const noexcept;
    [[nodiscard]] bool is_transformed(std::size_t axis) const noexcept;
    [[nodiscard]] per_dimension source_strides() const;
    [[nodiscard]] std::size_t source_bytes() const noexcept;
    [[nodiscard]] posed_problem pose() const;
    [[nodiscard]] filling fill() const;
    [[nodiscard]] filling scatter() const;
    [[nodiscard]] scaling scale() const;

    const fft_geometry& what_;
    fft_demands library_;
    fft_direction direction_;
    placement operand_;
    placement result_;
    bool over_;         ///< whether both share memory
    bool scattered_;    ///< whether the result is made in a workspace
    placement target_;  ///< where the library writes: the result, or that workspace, whose address is not known yet
    path path_;
};

}  // namespace weir::calls
