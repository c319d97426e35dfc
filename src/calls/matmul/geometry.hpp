#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calls/call.hpp"
#include "weir/dtype.hpp"
#include "weir/linalg.hpp"
#include "weir/shape.hpp"

namespace weir::calls {

/// A matrix for each index of the batch axes, or one for all of them. Strides in bytes; 0 along axes that the array does not have.
struct matrix_view {
    std::byte* first = nullptr;
    per_dimension batch_strides;
    std::int64_t row_stride = 0;
    std::int64_t column_stride = 0;
};

/// What a product is, wherever its arrays lie: shapes, types, factors, epilog. A pure value.
class matmul_geometry {
public:
    /// `call` names the call in messages. Throws argument_error, argument_type_error.
    matmul_geometry(const char* call, std::span<const array> operands, const matmul_options& how);

    [[nodiscard]] const char* call() const noexcept { return call_; }
    [[nodiscard]] dtype type() const noexcept { return type_; }
    [[nodiscard]] const weir::shape& result_shape() const noexcept { return result_shape_; }

    /// The matrices of a are (m, k), those of b (k, n).
    [[nodiscard]] std::int64_t m() const noexcept { return m_; }
    [[nodiscard]] std::int64_t n() const noexcept { return n_; }
    [[nodiscard]] std::int64_t k() const noexcept { return k_; }
    /// The axes before the last two, broadcast.
    [[nodiscard]] const per_dimension& batch() const noexcept { return batch_; }

    [[nodiscard]] std::complex<double> alpha() const noexcept { return alpha_; }
    [[nodiscard]] std::complex<double> beta() const noexcept { return beta_; }
    /// Whether c is read.
    [[nodiscard]] bool adds_c() const noexcept { return c_.has_value() && beta_ != 0.0; }
    [[nodiscard]] matmul_epilog epilog() const noexcept { return epilog_; }

    // The inputs of the call are in this order: a, b, c if there is one, the bias if there is one.
    static constexpr std::size_t a_input = 0;
    static constexpr std::size_t b_input = 1;
    [[nodiscard]] std::optional<std::size_t> c_input() const noexcept { return c_; }
    [[nodiscard]] std::optional<std::size_t> bias_input() const noexcept { return bias_; }
    [[nodiscard]] const weir::shape& input_shape(std::size_t input) const noexcept { return inputs_[input].extents; }
    [[nodiscard]] dtype input_type(std::size_t input) const noexcept { return inputs_[input].type; }

    /// An array of the shape of a, b or the result that lies so, as matrices.
    [[nodiscard]] matrix_view a_matrices(const placement& where) const;
    [[nodiscard]] matrix_view b_matrices(const placement& where) const;
    [[nodiscard]] matrix_view result_matrices(const placement& where) const;
    /// The strides of an input, broadcast to the shape of the result.
    [[nodiscard]] per_dimension broadcast_strides(std::size_t input, const placement& where) const;

private:
    struct described {
        weir::shape extents;
        dtype type;
    };
    void find_type();
    void find_shape();
    void find_factors(const matmul_options& how);
    void expect_broadcast(std::size_t input, const char* what) const;
    [[nodiscard]] std::string shapes() const;

    const char* call_;
    std::vector<described> inputs_;
    dtype type_ = dtype::float64;
    weir::shape result_shape_;
    per_dimension batch_;
    std::int64_t m_ = 1;
    std::int64_t n_ = 1;
    std::int64_t k_ = 1;
    std::complex<double> alpha_ = 1;
    std::complex<double> beta_ = 0;
    matmul_epilog epilog_;
    std::optional<std::size_t> c_;
    std::optional<std::size_t> bias_;
};

/// The operands of a product in the order of its inputs.
using matmul_arrays = detail::small_vector<array, 4>;
[[nodiscard]] matmul_arrays matmul_inputs(const array& a, const array& b, const matmul_options& how);

/// Whether an epilog adds a bias, and what it does then.
[[nodiscard]] constexpr bool adds_bias(matmul_epilog epilog) noexcept {
    return epilog == matmul_epilog::bias || epilog == matmul_epilog::relu_bias || epilog == matmul_epilog::gelu_bias;
}
[[nodiscard]] constexpr bool is_relu(matmul_epilog epilog) noexcept {
    return epilog == matmul_epilog::relu || epilog == matmul_epilog::relu_bias;
}
[[nodiscard]] constexpr bool is_gelu(matmul_epilog epilog) noexcept {
    return epilog == matmul_epilog::gelu || epilog == matmul_epilog::gelu_bias;
}

}  // namespace weir::calls
