#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "array/converting_copy.hpp"
#include "array/walk.hpp"
#include "calls/call.hpp"
#include "calls/matmul/geometry.hpp"
#include "weir/dtype.hpp"
#include "weir/linalg.hpp"

namespace weir::calls {

/// A matrix as BLAS takes it: elements lie one after the other within columns, or, if it is transposed, within rows.
struct blas_matrix {
    std::byte* first = nullptr;
    std::int64_t leading = 1;  ///< elements from one column (row) to the next
    bool is_transposed = false;
    per_dimension batch_strides;  ///< bytes, one for each of matmul_steps::batch
};

/// target = alpha left right + beta target, once for each index of the batch. The target is (rows, columns), the factors meet along
/// `depth`. It is the product as it was asked for, or its transpose.
struct blas_product {
    dtype type = dtype::float64;  ///< as what it is computed
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t depth = 0;
    per_dimension batch;
    blas_matrix left;
    blas_matrix right;
    blas_matrix target;              ///< not transposed
    bool is_product_turned = false;  ///< whether the target is the transpose of what was asked for
    std::complex<double> alpha = 1;
    std::complex<double> beta = 0;  ///< 0: the target is not read
};

/// The steps of one product, in this order: copies, product, epilog, scatter. Owns no memory of arrays.
struct matmul_steps {
    std::vector<converting_copy> copies;  ///< packs operands; copies c to the target
    blas_product product;                 ///< without depth it is only the target that is multiplied by beta
    matmul_epilog epilog = matmul_epilog::none;
    walk::plan elements;  ///< of the target, and of the bias if there is one
    /// The bias, if it is one element for each row of the target, one after the other.
    std::optional<const std::byte*> bias_of_rows;
    std::optional<converting_copy> scatter;  ///< from the target to the result, if they differ
};

/// What a library asks of the products that it is given.
struct matmul_demands {
    bool widens_short = false;  ///< it does not multiply 16-bit types: these are converted to float32
    std::int64_t most = 0;      ///< rows, columns, and elements from one to the next, at most
};

/// The way from operands to a result that lie somehow.
///
/// An operand that BLAS cannot read where it is goes by a packed copy in the workspace. The product is written to the result itself,
/// or to the workspace where the result overlaps an operand, lies as BLAS cannot write it, or has another type than is computed in.
/// A result in C order is computed as its transpose, since BLAS counts columns first.
class matmul_route {
public:
    /// Throws argument_error if the matrices are larger than the library takes.
    matmul_route(const matmul_geometry& what, const call_layout& layout, const matmul_demands& library);

    /// The workspace that is needed; 0 if none is. It begins at a multiple of `alignment`, as all parts of it do.
    [[nodiscard]] std::size_t workspace_bytes() const noexcept { return bytes_; }
    static constexpr std::size_t alignment = 256;

    /// The steps, with a workspace of `workspace_bytes` or more.
    [[nodiscard]] matmul_steps steps(std::byte* workspace) const;

private:
    /// A copy of an array in the workspace.
    struct packed_copy {
        std::size_t offset = 0;
        per_dimension strides;
    };
    [[nodiscard]] bool is_direct_target() const;
    [[nodiscard]] bool is_c_in_place() const;
    [[nodiscard]] std::size_t take(std::size_t elements);
    [[nodiscard]] std::optional<packed_copy> pack(std::size_t input, const matrix_view& view, std::int64_t rows,
                                                  std::int64_t columns, bool has_rows_and_columns);
    [[nodiscard]] placement packed_at(std::size_t input, const std::optional<packed_copy>& copy,
                                      std::byte* workspace) const;
    void add_copy(std::size_t input, const std::optional<packed_copy>& copy, std::byte* workspace,
                  std::vector<converting_copy>& to) const;
    [[nodiscard]] bool is_bias_of_rows(const per_dimension& strides, bool is_product_turned) const;
    [[nodiscard]] blas_product pose(const matrix_view& a, const matrix_view& b, const matrix_view& target) const;

    const matmul_geometry& what_;
    matmul_demands library_;
    call_layout layout_;
    dtype computed_;  ///< as what it is computed
    std::size_t bytes_ = 0;
    std::optional<packed_copy> a_;
    std::optional<packed_copy> b_;
    std::optional<packed_copy> bias_;
    std::optional<packed_copy> target_;
};

}  // namespace weir::calls
