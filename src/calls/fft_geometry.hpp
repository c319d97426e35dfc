#pragma once

#include <cstddef>
#include <cstdint>

#include "frontier/small_vector.hpp"
#include "weir/dtype.hpp"
#include "weir/fft.hpp"
#include "weir/shape.hpp"

namespace weir::calls {

/// One number for each dimension of an array.
using per_dimension = detail::small_vector<std::int64_t, 6>;

/// Of one element, as strides are counted.
[[nodiscard]] inline std::int64_t bytes_of(dtype type) noexcept { return static_cast<std::int64_t>(size_of(type)); }

/// What a transform of operands of some shape and element type is: which axes, how long, what comes out. A pure value,
/// the same in both directions.
class fft_geometry {
public:
    /// `call` names the call in messages. Throws argument_error, argument_type_error.
    fft_geometry(const char* call, fft_kind kind, const weir::shape& operand, dtype type, const fft::options& how,
                 bool all_axes);

    [[nodiscard]] const char* call() const noexcept { return call_; }
    [[nodiscard]] fft_kind kind() const noexcept { return kind_; }
    [[nodiscard]] const weir::shape& operand_shape() const noexcept { return operand_shape_; }
    [[nodiscard]] dtype operand_type() const noexcept { return operand_type_; }
    [[nodiscard]] const weir::shape& result_shape() const noexcept { return result_shape_; }
    [[nodiscard]] dtype result_type() const noexcept { return result_type_; }
    [[nodiscard]] bool double_precision() const noexcept { return size_of(real_type()) == sizeof(double); }
    /// The real and the complex type of the operand's precision.
    [[nodiscard]] dtype real_type() const noexcept;
    [[nodiscard]] dtype complex_type() const noexcept;

    /// The transformed axes; real transforms halve the last one.
    [[nodiscard]] const per_dimension& axes() const noexcept { return axes_; }
    /// The length of the transform along each of them.
    [[nodiscard]] const per_dimension& lengths() const noexcept { return lengths_; }
    /// The elements in each dimension that the transform reads, of the element type that it reads. The operand has fewer
    /// of them where it is to be filled up with zeros.
    [[nodiscard]] const per_dimension& source_extents() const noexcept { return source_extents_; }
    /// The element type that the transform reads: complex where the operand's is real and the transform is not.
    [[nodiscard]] dtype source_type() const noexcept;
    /// Whether the operand is not what the transform reads: its elements are too few, or real.
    [[nodiscard]] bool has_to_be_filled() const noexcept { return filled_; }

    /// The norm's factor.
    [[nodiscard]] double factor(fft_direction direction) const noexcept;

private:
    void find_axes(const fft::options& how, bool all_axes);
    void find_lengths(const fft::options& how);
    void find_extents();
    [[nodiscard]] bool is_transformed(std::int64_t axis) const noexcept;

    const char* call_;
    fft_kind kind_;
    fft_norm norm_;
    dtype operand_type_;
    dtype result_type_;
    bool filled_ = false;
    weir::shape operand_shape_;
    weir::shape result_shape_;
    per_dimension axes_;
    per_dimension lengths_;
    per_dimension source_extents_;
};

}  // namespace weir::calls
