#include "calls/matmul/geometry.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "calls/execution.hpp"
#include "weir/arithmetic.hpp"
#include "weir/error.hpp"

namespace weir::calls {

namespace {

bool is_multiplied(dtype type) noexcept {
    return type == dtype::float16 || type == dtype::bfloat16 || type == dtype::float32 || type == dtype::float64 ||
           type == dtype::complex64 || type == dtype::complex128;
}

/// The value of a factor, which elements of `type` must be able to have.
std::complex<double> factor_of(const char* call, const char* name, const scalar& factor, dtype type) {
    try {
        factor.expect_fits(type);
    } catch (const argument_error&) {
        throw argument_error(std::string(call) + ": " + name + " is " + factor.to_string() + ", and the elements are " +
                             name_of(type) + ": pass a real number, or complex operands");
    }
    std::complex<double> value;
    factor.store(dtype::complex128, reinterpret_cast<std::byte*>(&value));
    return value;
}

/// The extents before the last two.
std::span<const std::int64_t> batch_of(const weir::shape& extents) noexcept {
    const std::span<const std::int64_t> all = extents.extents();
    return all.first(all.size() > 2 ? all.size() - 2 : 0);
}

}  // namespace

matmul_geometry::matmul_geometry(const char* call, std::span<const array> operands, const matmul_options& how)
    : call_(call), epilog_(how.epilog) {
    const array& leading = leading_input(operands);
    for (const array& each : operands) {
        inputs_.push_back({each.shape(), each.dtype()});
        if (each.size() > 0 && !share_memory(each.device(), leading.device())) {
            throw argument_error(std::string(call) + ": one operand lies on " + leading.device().name() +
                                 ", another on " + each.device().name() + "; copy one of them with to(device)");
        }
    }
    const std::string name(call);
    if (how.c.has_value() != how.beta.has_value()) {
        throw argument_error(name + (how.c ? ": c is given without beta, which says how much of it is added"
                                           : ": beta is given without c, which it would multiply"));
    }
    if (adds_bias(epilog_) != how.bias.has_value()) {
        throw argument_error(
            name + (how.bias ? ": a bias is given, and the epilog adds none; choose bias, relu_bias or gelu_bias"
                             : ": the epilog adds a bias, and none is given"));
    }
    std::size_t next = b_input + 1;
    if (how.c) {
        c_ = next++;
    }
    if (how.bias) {
        bias_ = next++;
    }
    find_type();
    find_shape();
    find_factors(how);
}

std::string matmul_geometry::shapes() const {
    return "a has shape " + inputs_[a_input].extents.to_string() + ", b " + inputs_[b_input].extents.to_string();
}

void matmul_geometry::find_type() {
    type_ = inputs_[a_input].type;
    for (const described& each : inputs_) {
        if (!is_multiplied(each.type)) {
            throw argument_type_error(
                std::string(call_) +
                " takes float16, bfloat16, float32, float64, complex64 and complex128, these are " +
                name_of(each.type) + "; convert them with astype, integers to float64, say");
        }
        type_ = promote_types(type_, each.type);
    }
    if (is_complex(type_) && (is_relu(epilog_) || is_gelu(epilog_))) {
        throw argument_error(std::string(call_) + ": relu and gelu are for real elements, these are " + name_of(type_) +
                             "; leave the epilog out, or choose bias");
    }
}

void matmul_geometry::find_shape() {
    const std::string name(call_);
    const weir::shape& a = inputs_[a_input].extents;
    const weir::shape& b = inputs_[b_input].extents;
    const std::size_t a_axes = a.dimensions();
    const std::size_t b_axes = b.dimensions();
    if (a_axes == 0 || b_axes == 0) {
        throw argument_error(name + ": an operand has no axis (" + shapes() +
                             "); multiply by a number with *, or give it axes with reshape");
    }
    k_ = a[a_axes - 1];
    m_ = a_axes > 1 ? a[a_axes - 2] : 1;
    n_ = b_axes > 1 ? b[b_axes - 1] : 1;
    const std::int64_t rows = b[b_axes > 1 ? b_axes - 2 : 0];
    if (k_ != rows) {
        throw argument_error(name + ": " + shapes() + "; the last axis of a has " + std::to_string(k_) +
                             " elements, the axis of b that it meets " + std::to_string(rows) +
                             "; they must be as many (transpose one of them?)");
    }
    weir::shape batch;
    try {
        batch = broadcast_shapes(weir::shape(batch_of(a)), weir::shape(batch_of(b)));
    } catch (const argument_error&) {
        throw argument_error(name + ": " + shapes() +
                             "; the axes before the last two must be alike, or 1, or missing in one of them");
    }
    std::vector<std::int64_t> result(batch.extents().begin(), batch.extents().end());
    batch_.append(result.data(), result.data() + result.size());
    if (a_axes > 1) {
        result.push_back(m_);
    }
    if (b_axes > 1) {
        result.push_back(n_);
    }
    result_shape_ = weir::shape(std::span<const std::int64_t>(result));
    if (c_) {
        expect_broadcast(*c_, "c");
    }
    if (bias_) {
        expect_broadcast(*bias_, "the bias");
    }
}

void matmul_geometry::expect_broadcast(std::size_t input, const char* what) const {
    const weir::shape& extents = inputs_[input].extents;
    bool fits = extents.dimensions() <= result_shape_.dimensions();
    for (std::size_t i = 1; fits && i <= extents.dimensions(); ++i) {
        const std::int64_t extent = extents[extents.dimensions() - i];
        fits = extent == 1 || extent == result_shape_[result_shape_.dimensions() - i];
    }
    if (!fits) {
        throw argument_error(std::string(call_) + ": " + what + " has shape " + extents.to_string() +
                             ", and the result has shape " + result_shape_.to_string() +
                             "; it must have that shape, or one that is broadcast to it");
    }
}

void matmul_geometry::find_factors(const matmul_options& how) {
    alpha_ = factor_of(call_, "alpha", how.alpha, type_);
    if (how.beta) {
        beta_ = factor_of(call_, "beta", *how.beta, type_);
    }
}

namespace {

/// The matrices of an array that has `own` extents and strides, for the batch axes `batch`.
matrix_view matrices_of(const weir::shape& own, const placement& where, const per_dimension& batch, bool has_rows,
                        bool has_columns) {
    matrix_view view;
    view.first = where.first;
    std::size_t axes = own.dimensions();
    if (has_columns) {
        view.column_stride = where.strides[--axes];
    }
    if (has_rows) {
        view.row_stride = where.strides[--axes];
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
        const std::size_t missing = batch.size() - axes;
        const bool is_broadcast = i < missing || (own[i - missing] == 1 && batch[i] != 1);
        view.batch_strides.push_back(is_broadcast ? 0 : where.strides[i - missing]);
    }
    return view;
}

}  // namespace

matrix_view matmul_geometry::a_matrices(const placement& where) const {
    const weir::shape& own = inputs_[a_input].extents;
    return matrices_of(own, where, batch_, own.dimensions() > 1, true);
}

matrix_view matmul_geometry::b_matrices(const placement& where) const {
    const weir::shape& own = inputs_[b_input].extents;
    return matrices_of(own, where, batch_, true, own.dimensions() > 1);
}

matrix_view matmul_geometry::result_matrices(const placement& where) const {
    return matrices_of(result_shape_, where, batch_, inputs_[a_input].extents.dimensions() > 1,
                       inputs_[b_input].extents.dimensions() > 1);
}

per_dimension matmul_geometry::broadcast_strides(std::size_t input, const placement& where) const {
    const weir::shape& own = inputs_[input].extents;
    const std::size_t missing = result_shape_.dimensions() - own.dimensions();
    per_dimension strides;
    for (std::size_t i = 0; i < result_shape_.dimensions(); ++i) {
        const bool is_broadcast = i < missing || (own[i - missing] == 1 && result_shape_[i] != 1);
        strides.push_back(is_broadcast ? 0 : where.strides[i - missing]);
    }
    return strides;
}

matmul_arrays matmul_inputs(const array& a, const array& b, const matmul_options& how) {
    matmul_arrays inputs;
    inputs.push_back(a);
    inputs.push_back(b);
    if (how.c) {
        inputs.push_back(*how.c);
    }
    if (how.bias) {
        inputs.push_back(*how.bias);
    }
    return inputs;
}

}  // namespace weir::calls
