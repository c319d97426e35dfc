#include "calls/fft/geometry.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "weir/error.hpp"

namespace weir::calls {

namespace {

/// The longest transform for which its factor, and products with element sizes, stay exact.
constexpr std::int64_t longest = std::int64_t{1} << 48;

std::int64_t dimensions_of(const weir::shape& s) noexcept { return static_cast<std::int64_t>(s.dimensions()); }

std::size_t index(std::int64_t axis) noexcept { return static_cast<std::size_t>(axis); }

void expect_type(const char* call, fft_kind kind, dtype type) {
    const std::string name(name_of(type));
    if (type != dtype::float32 && type != dtype::float64 && type != dtype::complex64 && type != dtype::complex128) {
        throw argument_type_error(std::string(call) + " takes float32, float64, complex64 and complex128, these are " +
                                  name + "; convert them with astype");
    }
    if (kind == fft_kind::real_to_complex && is_complex(type)) {
        throw argument_type_error(std::string(call) + " takes real elements, these are " + name +
                                  "; call fft or fftn for complex ones");
    }
    if (kind == fft_kind::complex_to_real && !is_complex(type)) {
        throw argument_type_error(std::string(call) + " takes complex elements, these are " + name +
                                  "; call ifft or ifftn for real ones");
    }
}

}  // namespace

fft_geometry::fft_geometry(const char* call, fft_kind kind, const weir::shape& operand, dtype type,
                           const fft::options& how, bool all_axes)
    : call_(call), kind_(kind), norm_(how.norm), operand_type_(type), operand_shape_(operand) {
    expect_type(call, kind, type);
    if (operand.dimensions() == 0) {
        throw argument_error(std::string(call) +
                             ": the operand has no axis to transform; give it one with reshape({1})");
    }
    result_type_ = kind == fft_kind::complex_to_real ? real_type() : complex_type();
    find_axes(how, all_axes);
    find_lengths(how);
    find_extents();
}

dtype fft_geometry::complex_type() const noexcept {
    return operand_type_ == dtype::float32 || operand_type_ == dtype::complex64 ? dtype::complex64 : dtype::complex128;
}

dtype fft_geometry::real_type() const noexcept {
    return complex_type() == dtype::complex64 ? dtype::float32 : dtype::float64;
}

dtype fft_geometry::source_type() const noexcept {
    return kind_ == fft_kind::real_to_complex ? real_type() : complex_type();
}

bool fft_geometry::is_transformed(std::int64_t axis) const noexcept {
    return std::find(axes_.begin(), axes_.end(), axis) != axes_.end();
}

void fft_geometry::find_axes(const fft::options& how, bool all_axes) {
    const std::int64_t count = dimensions_of(operand_shape_);
    const auto add = [&](std::int64_t axis) {
        if (axis < -count || axis >= count) {
            throw argument_error(std::string(call_) + ": there is no axis " + std::to_string(axis) +
                                 " in an operand of shape " + operand_shape_.to_string() + "; axes are " +
                                 std::to_string(-count) + " to " + std::to_string(count - 1));
        }
        const std::int64_t known = axis < 0 ? axis + count : axis;
        if (is_transformed(known)) {
            throw argument_error(std::string(call_) + ": the axis " + std::to_string(axis) +
                                 " is named twice; name each axis once");
        }
        axes_.push_back(known);
    };
    if (how.axis && !how.axes.empty()) {
        throw argument_error(std::string(call_) + ": both axis and axes are given; give one of them");
    }
    if (!how.axes.empty()) {
        std::for_each(how.axes.begin(), how.axes.end(), add);
    } else if (how.axis) {
        add(*how.axis);
    } else {
        for (std::int64_t axis = all_axes ? 0 : count - 1; axis < count; ++axis) {
            add(axis);
        }
    }
}

void fft_geometry::find_lengths(const fft::options& how) {
    if (how.n && !how.s.empty()) {
        throw argument_error(std::string(call_) + ": both n and s are given; give one of them");
    }
    if (how.n && axes_.size() != 1) {
        throw argument_error(std::string(call_) + ": n is the length of one axis, and " + std::to_string(axes_.size()) +
                             " are transformed; give their lengths as s");
    }
    if (!how.s.empty() && how.s.size() != axes_.size()) {
        throw argument_error(std::string(call_) + ": s has the lengths of " + std::to_string(how.s.size()) +
                             " axes, and " + std::to_string(axes_.size()) +
                             " are transformed; give one for each, or name the axes");
    }
    double product = 1;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
        const std::int64_t extent = operand_shape_[index(axes_[i])];
        const bool halved = kind_ == fft_kind::complex_to_real && i + 1 == axes_.size();
        std::int64_t n = halved ? 2 * (extent - 1) : extent;
        if (how.n) {
            n = *how.n;
        } else if (!how.s.empty() && how.s[i] != -1) {
            n = how.s[i];
        }
        product *= static_cast<double>(n);
        if (n < 1 || product > static_cast<double>(longest)) {
            throw argument_error(std::string(call_) + ": the length of the transform along axis " +
                                 std::to_string(axes_[i]) + " is " + std::to_string(n) + " for an operand of shape " +
                                 operand_shape_.to_string() +
                                 "; it must be between 1 and 2**48, as the product of all lengths must, and can be "
                                 "given as n or s");
        }
        lengths_.push_back(n);
    }
}

void fft_geometry::find_extents() {
    per_dimension result;
    for (const std::int64_t extent : operand_shape_.extents()) {
        source_extents_.push_back(extent);
        result.push_back(extent);
    }
    for (std::size_t i = 0; i < axes_.size(); ++i) {
        source_extents_[index(axes_[i])] = lengths_[i];
        result[index(axes_[i])] = lengths_[i];
    }
    const std::size_t last = index(axes_[axes_.size() - 1]);
    const std::int64_t half = lengths_[lengths_.size() - 1] / 2 + 1;
    if (kind_ == fft_kind::real_to_complex) {
        result[last] = half;
    } else if (kind_ == fft_kind::complex_to_real) {
        source_extents_[last] = half;
    }
    result_shape_ = weir::shape(std::span<const std::int64_t>(result));
    filled_ = source_type() != operand_type_;
    for (std::size_t axis = 0; axis < source_extents_.size(); ++axis) {
        filled_ = filled_ || operand_shape_[axis] < source_extents_[axis];
    }
}

double fft_geometry::factor(fft_direction direction) const noexcept {
    double product = 1;
    for (const std::int64_t n : lengths_) {
        product *= static_cast<double>(n);
    }
    const bool forward = direction == fft_direction::forward;
    switch (norm_) {
        case fft_norm::backward:
            return forward ? 1.0 : 1.0 / product;
        case fft_norm::ortho:
            return 1.0 / std::sqrt(product);
        case fft_norm::forward:
            return forward ? 1.0 / product : 1.0;
    }
    return 1.0;
}

}  // namespace weir::calls
