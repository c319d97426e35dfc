#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "calls/fft_geometry.hpp"
#include "calls/fft_numbers.hpp"
#include "calls/fft_provider.hpp"
#include "weir/array.hpp"

namespace weir::calls {

/// How the elements of one side lie, and where.
struct fft_place {
    per_dimension strides;  ///< bytes
    std::byte* first = nullptr;

    friend bool operator==(const fft_place& a, const fft_place& b) noexcept {
        return a.first == b.first && std::equal(a.strides.begin(), a.strides.end(), b.strides.begin(), b.strides.end());
    }
    /// The place of an array.
    [[nodiscard]] static fft_place of(const array& a);
    /// That of elements in C order, anywhere where memory of the pool begins.
    [[nodiscard]] static fft_place packed(const weir::shape& extents, dtype type);
};

/// The steps of one transform, in this order: fill, transform, scale, scatter.
struct fft_steps {
    const std::byte* operand = nullptr;
    std::byte* filled = nullptr;  ///< where the operand is copied to first, if `is_filled`
    bool is_filled = false;
    filling fill;
    fft_problem problem;
    const std::byte* in = nullptr;  ///< what the problem reads and writes
    std::byte* out = nullptr;
    std::byte* target = nullptr;
    scaling scale;
    std::byte* result = nullptr;
    std::unique_ptr<const filling> scatter;  ///< from the target to the result, if they differ
};

/// The same as work of the host.
struct fft_work {
    fft_steps steps;
    std::shared_ptr<const fft_transform> transform;

    void operator()() const;
};

/// What a library asks of the problems that it is given; nothing, as FFTW, by default.
struct fft_demands {
    /// Whether it can do a problem. Null: any.
    bool (*takes)(const fft_problem&) = nullptr;

    /// What both sides have to begin at a multiple of, to be `aligned`.
    [[nodiscard]] std::size_t alignment(bool double_precision) const noexcept {
        return takes == nullptr ? fft_alignment : 2 * (double_precision ? sizeof(double) : sizeof(float));
    }
};

/// The way from one operand to one result that lie somehow.
///
/// Libraries read and write with any strides. Where the operand is not what the transform reads (it is to be filled up
/// with zeros, it is real although the transform is complex, or it must not be changed and the library cannot help it), it
/// is first copied to where it can be: into the result, which is then transformed in place, or, where the result's
/// elements do not lie so, to a workspace. A result that runs backwards along a transformed axis is made in a workspace:
/// FFTW 3.3.10 has no end of planning some of these. Where a library does not take a problem, one side or both go by a packed
/// copy, with the transformed axes innermost.
class fft_route {
public:
    /// `over`: operand and result share memory. Throws argument_error if the one cannot be transformed over the other.
    fft_route(const fft_geometry& what, fft_direction direction, fft_place operand, fft_place result, bool over,
              const fft_demands& library = {});

    /// The workspace that is needed; 0 if none is.
    [[nodiscard]] std::size_t workspace_bytes() const noexcept;
    /// Whether the operand's memory is changed.
    [[nodiscard]] bool in_place() const noexcept { return over_; }

    /// What the library is to do, wherever the operand, the result and the workspace lie.
    [[nodiscard]] fft_problem problem() const { return pose().problem; }
    /// The steps, with a workspace of `workspace_bytes` or more.
    [[nodiscard]] fft_steps steps(std::byte* workspace) const;
    /// The work on the host. Throws missing_library, device_error.
    [[nodiscard]] fft_work prepare(std::byte* workspace) const;

private:
    enum class path : std::uint8_t { direct, in_place, by_result, by_workspace };

    /// A problem, and how many bytes from where a side begins the library is to begin.
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
    fft_place operand_;
    fft_place result_;
    bool over_;
    bool scattered_;    ///< whether the result is made in a workspace
    fft_place target_;  ///< where the library writes: the result, or that workspace, whose address is not known yet
    path path_;
};

}  // namespace weir::calls
