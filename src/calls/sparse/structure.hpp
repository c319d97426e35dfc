#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weir/dtype.hpp"
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
};

/// A description of the mistake in the row offsets and column indices of a matrix of `n` columns; empty if there is none.
template <class Index>
[[nodiscard]] std::string mistake_in(std::span<const Index> offsets, std::span<const Index> columns, std::int64_t n);

/// The same for indices of the system's type.
[[nodiscard]] std::string mistake_in(const sparse_system& system, const std::byte* offsets, const std::byte* columns);

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
