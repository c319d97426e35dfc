#pragma once

#include <cstddef>
#include <cstdint>

#include "calls/call.hpp"
#include "weir/dtype.hpp"
#include "weir/fft.hpp"
#include "weir/shape.hpp"

namespace weir::calls {

/// Size of one element, in the integer type of strides.
[[nodiscard]] inline std::int64_t bytes_of(dtype type) noexcept { return static_cast<std::int64_t>(size_of(type)); }

/// The description of a transform of operands of one shape and element type: its axes, their lengths, its result. A pure value,
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
    /// The length of the transform along each axis.
    [[nodiscard]] const per_dimension& lengths() const noexcept { return lengths_; }
    /// The number of elements in each dimension that the transform reads, of the element type that it reads. The operand has fewer
    /// where it is to be filled up with zeros.
    [[nodiscard]] const per_dimension& source_extents() const noexcept { return source_extents_; }
    /// The element type that the transform reads: complex where the operand's is real and the transform is not.
    [[nodiscard]] dtype source_type() const noexcept;
    /// Whether the operand differs from what the transform reads: it has too few elements, or real ones.
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
