#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weir/dtype.hpp"
#include "weir/error.hpp"
#include "weir/sparse.hpp"

namespace weir::calls {

/// A sparse matrix without its values.
struct sparse_system {
    matrix_kind kind = matrix_kind::general;
    matrix_triangle triangle = matrix_triangle::full;
    dtype values = dtype::float64;
    dtype indices = dtype::int32;
    std::int64_t n = 0;
    std::int64_t nonzeros = 0;
    std::size_t most_bytes = std::numeric_limits<std::size_t>::max();  ///< that the factors may take
};

/// A description of the mistake in the row offsets and column indices of a matrix of `n` columns; empty if there is none.
template <class Index>
[[nodiscard]] std::string mistake_in(std::span<const Index> offsets, std::span<const Index> columns, std::int64_t n);

/// Row offsets and column indices that the requirements of csr_matrix do not allow, or that are not those of the analysis. A call that
/// blocks throws it as it is, although the work has found it.
class structure_error final : public argument_error {
public:
    using argument_error::argument_error;
};

/// The row offsets and column indices of an analysis, by which the places of a matrix in other arrays are compared with those of the
/// first: by hashes of 64 bits each. Indices are of the system's type, in host memory.
class analyzed_indices {
public:
    /// Throws structure_error for a mistake in them.
    void take(const sparse_system& system, const std::byte* offsets, const std::byte* columns);
    /// Throws structure_error if these are others. After a `take` that failed it does nothing: that is the failure to report.
    void expect(const sparse_system& system, const std::byte* offsets, const std::byte* columns) const;

private:
    std::optional<std::array<std::size_t, 2>> hashes_;
};

/// The number of elements, which `Index` can count. Throws argument_error, with what to do, if it cannot.
template <class Index>
[[nodiscard]] Index counted(std::int64_t elements) {
    if (elements > std::numeric_limits<Index>::max()) {
        throw argument_error("with both its triangles the matrix has " + std::to_string(elements) +
                             " elements, more than its indices can count: give int64 indices");
    }
    return static_cast<Index>(elements);
}

/// Positions of the elements of a matrix in the order of columns: rows increase within a column.
template <class Index>
struct column_structure {
    std::vector<Index> starts;  ///< (n + 1)
    std::vector<Index> rows;
    /// The position in the values of the rows' matrix; ~position if the conjugate of that value is meant.
    std::vector<Index> sources;
};

/// The whole matrix, with the missing triangle filled in.
template <class Index>
[[nodiscard]] column_structure<Index> whole_by_columns(const sparse_system& system, std::span<const Index> offsets,
                                                       std::span<const Index> columns);

/// The lower triangle of a matrix that is not general.
template <class Index>
[[nodiscard]] column_structure<Index> lower_by_columns(const sparse_system& system, std::span<const Index> offsets,
                                                       std::span<const Index> columns);

}  // namespace weir::calls
